//! Virtual machines.
//!
//! ```text
//!   deploy ─▶ Stopped ─▶ Starting ─▶ Running ◀─▶ Stopping ◀─▶ Stopped        no host: Error
//!                                       │ destroy
//!                                       ▼
//!                      Stopping ─▶ Stopped ─▶ Destroyed ─▶ Expunging ─▶ gone   the last two by the background task
//! ```

mod deploy;
mod destroy;
mod list;
mod placement;
mod power;
mod request;
mod update;

pub(super) use list::is_hypervisor;
pub(crate) use request::LENIENT;

use super::{job, sync};
use crate::call::Call;
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::compute::Vm;
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync("listVirtualMachines", LIST, list::list),
    sync("listVirtualMachinesMetrics", LIST, list::list_metrics),
    sync("getVirtualMachineUserData", "virtualmachineid:vm!", list::user_data),
    sync("listNics", "virtualmachineid:vm! nicid:nic networkid:network", list::list_nics),
    job(
        "deployVirtualMachine",
        "zoneid:zone! serviceofferingid:serviceoffering! templateid:template name displayname \
         networkids:network[] ipaddress userdata:long keypair keypairs:long \
         affinitygroupids:affinitygroup[] affinitygroupnames:long diskofferingid:diskoffering size:number \
         rootdisksize:number startvm:flag hostid:host hypervisor group account domainid:domain \
         projectid:project leaseduration:number nicmultiqueuenumber:number \
         overridediskofferingid:diskoffering securitygroupids:none[] snapshotid:none userdataid:none \
         volumeid:volume",
        "user.vm.DeployVMCmd",
        deploy::deploy,
    ),
    job(
        "startVirtualMachine",
        "id:vm! hostid:host clusterid:cluster podid:pod",
        "user.vm.StartVMCmd",
        power::start,
    ),
    job("stopVirtualMachine", "id:vm! forced:flag", "user.vm.StopVMCmd", power::stop),
    job("rebootVirtualMachine", "id:vm! forced:flag", "user.vm.RebootVMCmd", power::reboot),
    job(
        "destroyVirtualMachine",
        "id:vm! expunge:flag volumeids:volume[]",
        "user.vm.DestroyVMCmd",
        destroy::destroy,
    ),
    job("expungeVirtualMachine", "id:vm!", "admin.vm.ExpungeVMCmd", destroy::expunge),
    sync("recoverVirtualMachine", "id:vm!", destroy::recover),
    sync(
        "updateVirtualMachine",
        "id:vm! name displayname group userdata:long details:map deleteprotection:flag leaseduration:number ostypeid:ostype \
         securitygroupids:none[] userdataid:none",
        update::update,
    ),
    job(
        "scaleVirtualMachine",
        "id:vm! serviceofferingid:serviceoffering! maxiops:number miniops:number",
        "user.vm.ScaleVMCmd",
        update::scale,
    ),
    job("resetPasswordForVirtualMachine", "id:vm!", "user.vm.ResetVMPasswordCmd", update::reset_password),
    job(
        "updateVMAffinityGroup",
        "id:vm! affinitygroupids:affinitygroup[] affinitygroupnames:long",
        "user.affinitygroup.UpdateVMAffinityGroupCmd",
        update::affinity,
    ),
];

const LIST: &str = "id:vm ids:vm[] name state zoneid:zone networkid:network templateid:template hostid:host \
         serviceofferingid:serviceoffering affinitygroupid:affinitygroup vpcid:vpc userid:user keypair \
         details:long userdata:flag hypervisor account domainid:domain projectid:project listall:flag \
         autoscalevmgroupid:none backupofferingid:none extensionid:none groupid:instancegroup isoid:none \
         securitygroupid:none userdataid:none";

/// A machine that is there and the caller's.
fn own(cloud: &Cloud, call: &Call) -> Result<Key<Vm>> {
    let key = call.the(&cloud.vms, "id")?;
    let row = &cloud.vms[key];
    if row.removed {
        return Err(expunged(key));
    }
    cloud.allow(call.caller, row.account)?;
    Ok(key)
}

/// What is said of a machine that is gone and whose record is not.
fn expunged(vm: Key<Vm>) -> ApiError {
    ApiError::invalid(format!("Unable to find UUID for id [{}] of type [VirtualMachine]", vm.number()))
}
