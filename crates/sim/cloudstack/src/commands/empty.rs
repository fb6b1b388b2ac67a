//! Lists of things that nobody can make here: snapshots, VPNs, security groups and the like. A server without any answers
//! the same.

use super::sync;
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::Result;

/// A list that is always empty. Ids of other things are checked as everywhere.
const fn empty(name: &'static str, reads: &'static str) -> Command {
    sync(name, reads, nothing)
}

pub(super) const COMMANDS: &[Command] = &[
    empty(
        "listSnapshots",
        "id:none ids:none[] volumeid:volume zoneid:zone domainid:domain projectid:project",
    ),
    empty("listSnapshotPolicies", "id:none volumeid:volume domainid:domain projectid:project"),
    empty(
        "listVMSnapshot",
        "vmsnapshotid:none vmsnapshotids:none[] virtualmachineid:vm domainid:domain projectid:project",
    ),
    empty("listVMSchedule", "id:none virtualmachineid:vm!"),
    empty("listSecurityGroups", "id:none virtualmachineid:vm domainid:domain projectid:project"),
    empty("listUserData", "id:none domainid:domain projectid:project"),
    empty("listCniConfiguration", "id:none domainid:domain projectid:project"),
    empty("listSslCerts", "certid:none accountid:account lbruleid:lb projectid:project"),
    empty(
        "listRemoteAccessVpns",
        "id:none networkid:network publicipid:ip domainid:domain projectid:project",
    ),
    empty("listVpnUsers", "id:none domainid:domain projectid:project"),
    empty("listVpnGateways", "id:none vpcid:vpc domainid:domain projectid:project"),
    empty("listVpnConnections", "id:none vpcid:vpc domainid:domain projectid:project"),
    empty("listVpnCustomerGateways", "id:none domainid:domain projectid:project"),
    empty("listPrivateGateways", "id:none vpcid:vpc domainid:domain projectid:project"),
    empty("listStaticRoutes", "id:none gatewayid:none vpcid:vpc domainid:domain projectid:project"),
    empty("listGlobalLoadBalancerRules", "id:none domainid:domain projectid:project"),
    empty(
        "listLoadBalancers",
        "id:none networkid:network sourceipaddressnetworkid:network domainid:domain projectid:project",
    ),
    empty("listIpv6FirewallRules", "id:none networkid:network domainid:domain projectid:project"),
    empty(
        "listAutoScalePolicies",
        "id:none conditionid:none vmgroupid:none domainid:domain projectid:project",
    ),
    empty(
        "listAutoScaleVmGroups",
        "id:none lbruleid:lb policyid:none vmprofileid:none zoneid:zone domainid:domain projectid:project",
    ),
    empty(
        "listAutoScaleVmProfiles",
        "id:none serviceofferingid:serviceoffering templateid:template zoneid:zone domainid:domain projectid:project",
    ),
    empty("listConditions", "id:none counterid:none policyid:none domainid:domain projectid:project"),
    empty("listBuckets", "id:none ids:none[] objectstorageid:none domainid:domain projectid:project"),
    empty("listSharedFileSystems", "id:none networkid:network zoneid:zone domainid:domain projectid:project"),
    empty("listBackupSchedule", "id:none virtualmachineid:vm domainid:domain projectid:project"),
    empty("listProjectInvitations", "id:none projectid:project userid:user domainid:domain"),
];

fn nothing(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Ok(Answer::List("", Vec::new()))
}
