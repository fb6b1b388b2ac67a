//! What a cloud says about a machine, as templates in its user data see it.

use serde_json::{Value, json};

use crate::vm::VmSpec;

/// Metadata of a machine.
#[derive(Debug, Clone)]
pub(in super::super) struct Metadata(Value);

impl Metadata {
    /// The metadata of a machine at an address. Clouds name the same things differently: all their names are there.
    pub(in super::super) fn of(vm: &VmSpec, address: std::net::Ipv4Addr) -> Self {
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
        // Variables of v1 can be had without saying so.
        let mut all = v1.clone();
        all["v1"] = v1;
        all["ds"] = json!({"meta_data": ds});
        Self(all)
    }

    /// The value of a variable, such as `ds`, `meta_data`, `hostname`.
    pub(super) fn lookup(&self, path: &[String]) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, key| value.get(key))
    }

    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self(json!({
            "v1": {"local_hostname": "node-1"}, "local_hostname": "node-1",
            "ds": {"meta_data": {
                "hostname": "node-1", "local_hostname": "Node-1", "instance_id": "i-1", "port": 7, "none": null,
            }},
        }))
    }
}
