//! The list of extensions.

use serde_json::{Value, json};

use super::Fail;
use crate::cloud::Cloud;
use crate::wire::{Handled, Reply};

/// Alias, name and description.
const EXTENSIONS: &[(&str, &str, &str, &str)] = &[
    ("address-group", "Address group", "Support address group", "2020-07-15T10:00:00-00:00"),
    ("address-scope", "Address scope", "Address scopes extension.", "2015-07-26T10:00:00-00:00"),
    ("agent", "agent", "The agent management extension.", "2013-02-03T10:00:00-00:00"),
    (
        "allowed-address-pairs",
        "Allowed Address Pairs",
        "Provides allowed address pairs",
        "2013-07-23T10:00:00-00:00",
    ),
    ("availability_zone", "Availability Zone", "Availability zone support.", "2015-01-01T10:00:00-00:00"),
    (
        "binding",
        "Port Binding",
        "Expose port bindings of a virtual port to external application",
        "2014-02-03T10:00:00-00:00",
    ),
    (
        "default-subnetpools",
        "Default Subnetpools",
        "Provides ability to mark and use a subnetpool as the default.",
        "2016-02-18T18:00:00-00:00",
    ),
    (
        "external-net",
        "Neutron external network",
        "Adds external network attribute to network resource.",
        "2013-01-14T10:00:00-00:00",
    ),
    (
        "ext-gw-mode",
        "Neutron L3 Configurable external gateway mode",
        "Extension of the router abstraction for specifying whether SNAT should occur on the external gateway",
        "2013-03-28T10:00:00-00:00",
    ),
    (
        "extra_dhcp_opt",
        "Neutron Extra DHCP options",
        "Extra options configuration for DHCP.",
        "2013-03-17T12:00:00-00:00",
    ),
    (
        "extraroute",
        "Neutron Extra Route",
        "Extra routes configuration for L3 router",
        "2013-02-01T10:00:00-00:00",
    ),
    (
        "extraroute-atomic",
        "Atomically add/remove extra routes",
        "Edit extra routes of a router on server side by atomically adding/removing extra routes",
        "2019-07-10T00:00:00+00:00",
    ),
    (
        "fip-port-details",
        "Floating IP Port Details Extension",
        "Add port_details attribute to Floating IP resource",
        "2018-04-09T10:00:00-00:00",
    ),
    (
        "filter-validation",
        "Filter parameters validation",
        "Provides validation on filter parameters.",
        "2018-03-21T10:00:00-00:00",
    ),
    ("net-mtu", "Network MTU", "Provides MTU attribute for a network resource.", "2015-03-25T10:00:00-00:00"),
    (
        "net-mtu-writable",
        "Network MTU (writable)",
        "Provides a writable MTU attribute for a network resource.",
        "2017-07-12T00:00:00-00:00",
    ),
    (
        "network_availability_zone",
        "Network Availability Zone",
        "Availability zone support for network.",
        "2015-01-01T10:00:00-00:00",
    ),
    (
        "pagination",
        "Pagination support",
        "Extension that indicates that pagination is enabled.",
        "2016-06-12T00:00:00-00:00",
    ),
    ("port-security", "Port Security", "Provides port security", "2012-07-23T10:00:00-00:00"),
    (
        "project-id",
        "project_id field enabled",
        "Extension that indicates that project_id field is enabled.",
        "2016-09-09T09:09:09-09:09",
    ),
    (
        "provider",
        "Provider Network",
        "Expose mapping of virtual networks to physical networks",
        "2012-09-07T10:00:00-00:00",
    ),
    (
        "quotas",
        "Quota management support",
        "Expose functions for quotas management per project",
        "2012-07-29T10:00:00-00:00",
    ),
    (
        "quota_details",
        "Quota details management support",
        "Expose functions for quotas usage statistics per project",
        "2017-02-10T10:00:00-00:00",
    ),
    (
        "rbac-policies",
        "RBAC Policies",
        "Allows creation and modification of policies that control tenant access to resources.",
        "2015-06-17T12:15:12-00:00",
    ),
    (
        "router",
        "Neutron L3 Router",
        "Router abstraction for basic L3 forwarding between L2 Neutron networks and access to external networks via a NAT gateway.",
        "2012-07-20T10:00:00-00:00",
    ),
    (
        "router_availability_zone",
        "Router Availability Zone",
        "Availability zone support for router.",
        "2015-01-01T10:00:00-00:00",
    ),
    ("security-group", "security-group", "The security groups extension.", "2012-10-05T10:00:00-00:00"),
    (
        "security-groups-normalized-cidr",
        "Normalized CIDR field for security group rules",
        "Add new field with normalized remote_ip_prefix cidr in SG rule",
        "2020-07-28T10:00:00-00:00",
    ),
    (
        "security-groups-remote-address-group",
        "Remote address group id field for security group rules",
        "Add new field of remote address group id in SG rules",
        "2020-08-01T10:00:00-00:00",
    ),
    (
        "sorting",
        "Sorting support",
        "Extension that indicates that sorting is enabled.",
        "2016-06-12T00:00:00-00:00",
    ),
    (
        "standard-attr-description",
        "standard-attr-description",
        "Extension to add descriptions to standard attributes",
        "2016-02-10T10:00:00-00:00",
    ),
    (
        "standard-attr-revisions",
        "Resource revision numbers",
        "This extension will display the revision number of neutron resources.",
        "2016-04-11T10:00:00-00:00",
    ),
    (
        "standard-attr-tag",
        "Tag support for resources with standard attribute: port, subnet, subnetpool, network, security_group, router, floatingip, policy, trunk, network_segment_range",
        "Enables to set tag on resources with standard attribute.",
        "2017-01-01T00:00:00-00:00",
    ),
    (
        "standard-attr-timestamp",
        "Resource timestamps",
        "Adds created_at and updated_at fields to all Neutron resources that have Neutron standard attributes.",
        "2016-09-12T10:00:00-00:00",
    ),
    (
        "stateful-security-group",
        "Stateful security group",
        "Indicates if the security group is stateful or not",
        "2019-11-26T09:00:00-00:00",
    ),
    (
        "subnet_allocation",
        "Subnet Allocation",
        "Enables allocation of subnets from a subnet pool",
        "2015-03-30T10:00:00-00:00",
    ),
    ("tag-creation", "Tag creation on resources", "Tag a resource on creation", "2018-02-14T10:00:00-00:00"),
    ("trunk", "Trunk Extension", "Provides support for trunk ports", "2016-01-01T10:00:00-00:00"),
    ("trunk-details", "Trunk port details", "Expose trunk port details", "2016-01-01T10:00:00-00:00"),
];

pub(super) fn handle(cloud: &Cloud, rest: &[&str]) -> Handled {
    let active = EXTENSIONS
        .iter()
        .filter(|(alias, ..)| !cloud.settings.disabled_extensions.iter().any(|it| it == alias));
    let show = |(alias, name, description, updated): &(&str, &str, &str, &str)| json!({"name": name, "alias": alias, "description": description, "updated": updated, "links": []});
    match rest {
        [] => Ok(Reply::ok(json!({"extensions": active.map(show).collect::<Vec<Value>>()}))),
        [alias, ..] => match active.clone().find(|(held, ..)| held == alias) {
            Some(found) => Ok(Reply::ok(json!({"extension": show(found)}))),
            None => {
                let text = format!(
                    "The resource could not be found.<br /><br />\nExtension with alias {alias} does not exist\n\n"
                );
                let body = json!({"message": text, "code": "404 Not Found", "title": "Not Found"});
                Err(Fail::reply(Reply::json(404, body)))
            }
        },
    }
}
