//! Offerings and guest operating systems.

use super::{root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::compute::{Vm, VmState};
use crate::model::identity::RoleType;
use crate::model::place::{OfferedSize, ServiceOffering, Size};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listServiceOfferings",
        "id:serviceoffering name zoneid:zone issystem:flag systemvmtype isrecursive:flag projectid:project \
         cpunumber:number cpuspeed:number domainid:domain memory:number templateid:template \
         vgpuprofileid:none virtualmachineid:vm",
        list_service_offerings,
    ),
    root_admin(sync(
        "createServiceOffering",
        "name! displaytext cpunumber:number cpuspeed:number memory:number customized:flag mincpunumber:number \
         maxcpunumber:number minmemory:number maxmemory:number",
        create_service_offering,
    )),
    sync(
        "listDiskOfferings",
        "id:diskoffering name zoneid:zone projectid:project domainid:domain storageid:none \
         virtualmachineid:vm volumeid:volume",
        list_disk_offerings,
    ),
    sync(
        "listNetworkOfferings",
        "id:networkoffering name zoneid:zone state guestiptype forvpc:flag projectid:project \
         domainid:domain networkid:network",
        list_network_offerings,
    ),
    sync(
        "listVPCOfferings",
        "id:vpcoffering name state isdefault:flag domainid:domain zoneid:zone",
        list_vpc_offerings,
    ),
    sync("listOsTypes", "id:ostype description ids:ostype[] oscategoryid:oscategory", list_os_types),
];

fn list_service_offerings(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let system = call.is("issystem");
    if system && !call.caller.is_root() {
        return Err(ApiError::invalid("Only ROOT admins can access system offerings."));
    }
    let vm = call.key(&cloud.vms, "virtualmachineid");
    if let Some(vm) = vm {
        if cloud.vms[vm].removed {
            return Err(ApiError::invalid("unable to find a virtual machine with specified id"));
        }
        cloud.allow(call.caller, cloud.vms[vm].account)?;
    }
    if call.is("isrecursive") && call.caller.role == RoleType::User {
        return Err(ApiError::invalid(
            "Only ROOT admins and Domain admins can list service offerings with isrecursive=true",
        ));
    }
    let number = |name: &str| call.number(name).and_then(|number| u64::try_from(number).ok());
    let wanted = (number("cpunumber"), number("cpuspeed"), number("memory"));
    let shown = cloud
        .service_offerings
        .iter()
        .filter(|row| {
            row.system_vm_type.is_some() == system
                && call.selects(&cloud.service_offerings, "id", row.key)
                && call.names("name", &row.name)
                && call.keyword_in(&[&row.name, row.display_text.as_deref().unwrap_or_default()])
                && row.system_vm_type.is_none_or(|kind| call.names("systemvmtype", kind))
                && offers(row.size, wanted)
                && vm.is_none_or(|vm| may_become(&cloud.vms[vm], row.key, row.size))
        })
        .map(|row| cloud.show_service_offering(row.key))
        .collect();
    Ok(Answer::List("serviceoffering", shown))
}

/// Machines of an offering can have at least so many cores, this speed and this memory.
fn offers(size: OfferedSize, wanted: (Option<u64>, Option<u64>, Option<u64>)) -> bool {
    let least = |held: u64, wanted: Option<u64>| wanted.is_none_or(|wanted| held >= wanted);
    let within = |(least, most): (u64, u64), wanted: Option<u64>| {
        wanted.is_none_or(|wanted| (least..=most).contains(&wanted))
    };
    let (cores, mhz, memory) = wanted;
    match size {
        OfferedSize::Fixed(size) => {
            least(size.cores, cores) && least(size.mhz, mhz) && least(size.memory_mib, memory)
        }
        OfferedSize::Custom => true,
        OfferedSize::Constrained { cores: some, memory_mib, mhz: speed } => {
            within(some, cores) && least(speed, mhz) && within(memory_mib, memory)
        }
    }
}

/// A machine can get another offering: one that runs only one that is no smaller.
fn may_become(vm: &Vm, offering: Key<ServiceOffering>, size: OfferedSize) -> bool {
    let same = offering == vm.offering && matches!(size, OfferedSize::Fixed(_));
    let most = match size {
        OfferedSize::Fixed(size) => Some((size.cores, size.mhz, size.memory_mib)),
        OfferedSize::Custom => None,
        OfferedSize::Constrained { cores, memory_mib, mhz } => Some((cores.1, mhz, memory_mib.1)),
    };
    let held = vm.size;
    let fits = |(cores, mhz, memory)| cores >= held.cores && mhz >= held.mhz && memory >= held.memory_mib;
    !same && (vm.state != VmState::Running || most.is_none_or(fits))
}

fn create_service_offering(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let number = |name: &str| call.number(name).and_then(|number| u64::try_from(number).ok());
    let range = |least: &str, most: &str| Some((number(least)?, number(most)?));
    let bounds = range("mincpunumber", "maxcpunumber").zip(range("minmemory", "maxmemory"));
    let size = match (number("cpunumber"), number("cpuspeed"), number("memory"), bounds) {
        (Some(cores), Some(mhz), Some(memory_mib), _) => OfferedSize::Fixed(Size { cores, mhz, memory_mib }),
        (None, Some(mhz), None, Some((cores, memory_mib))) => {
            OfferedSize::Constrained { cores, memory_mib, mhz }
        }
        (None, None, None, None) if call.is("customized") => OfferedSize::Custom,
        _ => {
            return Err(ApiError::invalid(
                "For creating a custom compute offering cpu and memory all should be null; for a fixed one none",
            ));
        }
    };
    let key = cloud.add_service_offering(call.text("name").unwrap_or_default(), size);
    Ok(Answer::Object("serviceoffering", cloud.show_service_offering(key)))
}

fn list_disk_offerings(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let shown = cloud
        .disk_offerings
        .iter()
        .filter(|row| {
            call.selects(&cloud.disk_offerings, "id", row.key)
                && call.names("name", &row.name)
                && call.keyword_in(&[&row.name, &row.display_text])
        })
        .map(|row| cloud.show_disk_offering(row.key))
        .collect();
    Ok(Answer::List("diskoffering", shown))
}

fn list_network_offerings(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let shown = cloud
        .network_offerings
        .iter()
        .filter(|row| {
            call.selects(&cloud.network_offerings, "id", row.key)
                && call.names("name", &row.name)
                && call.keyword_in(&[&row.name, &row.display_text])
                && call.names("state", if row.enabled { "Enabled" } else { "Disabled" })
                && (row.enabled || call.caller.is_root())
                && call.names("guestiptype", row.guest_type.name())
                && call.flag("forvpc").is_none_or(|wanted| wanted == row.for_vpc)
        })
        .map(|row| cloud.show_network_offering(row.key))
        .collect();
    Ok(Answer::List("networkoffering", shown))
}

fn list_vpc_offerings(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let shown = cloud
        .vpc_offerings
        .iter()
        .filter(|row| {
            call.selects(&cloud.vpc_offerings, "id", row.key)
                && call.names_partly("name", &row.name)
                && call.keyword_in(&[&row.name])
                && call.names("state", if row.enabled { "Enabled" } else { "Disabled" })
                && call.flag("isdefault").is_none_or(|wanted| wanted == row.default)
        })
        .map(|row| cloud.show_vpc_offering(row.key))
        .collect();
    Ok(Answer::List("vpcoffering", shown))
}

fn list_os_types(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let ids = call.keys(&cloud.os_types, "ids");
    let mut rows: Vec<_> = cloud
        .os_types
        .iter()
        .filter(|row| {
            call.selects(&cloud.os_types, "id", row.key)
                && (ids.is_empty() || ids.contains(&row.key))
                && call.names("description", &row.name)
                && call.keyword_in(&[&row.name])
        })
        .collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Answer::List("ostype", rows.into_iter().map(|row| cloud.show_os_type(row.key)).collect()))
}
