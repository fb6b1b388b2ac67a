//! Instance metadata, as templates in user data see it.

use std::net::Ipv4Addr;

use capstan_user_data::Metadata;
use serde_json::json;

use crate::vm::VmSpec;

/// The metadata of a machine. Clouds use different names for the same field: all are included.
pub(super) fn of(vm: &VmSpec, address: Ipv4Addr) -> Metadata {
    let address = address.to_string();
    let mut ds = json!({
        "instance_id": vm.id, "local_hostname": vm.name, "hostname": vm.name, "name": vm.name,
        "local_ipv4": address, "uuid": vm.id,
    });
    if let Some(provider_id) = &vm.provider_id {
        ds["provider_id"] = provider_id.as_str().into();
    }
    for (key, value) in &vm.tags {
        ds["tags"][key.as_str()] = value.as_str().into();
    }
    let v1 = json!({
        "instance_id": vm.id, "local_hostname": vm.name, "cloud_name": "sim", "platform": "sim",
        "distro": "ubuntu", "machine": "x86_64",
    });
    Metadata::new(&v1, &ds)
}
