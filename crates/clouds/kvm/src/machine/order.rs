//! The order of a machine: its complete specification without the boot data.

use std::collections::BTreeMap;

use capstan_capi_types::core::Machine;
use capstan_provider_kit::{BootData, BootDataRef, order};
use serde::{Deserialize, Serialize};

use super::SCHEME;
use crate::backend::{Id, MachineSpec};
use crate::types::{HostVolume, KVMMachine, NodeTaint};

/// Maximum length of a machine's name: it becomes a host name.
const MAX_NAME: usize = 63;

/// The order of a machine. The host assigns its address, like a cloud's DHCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Host name.
    pub name: String,
    pub network: Id,
    pub image: String,
    /// CPU limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory limit in MiB.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_servers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_volumes: Vec<HostVolume>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Taints of its Node, in the kubelet's format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_taints: Vec<String>,
    pub boot_data: BootDataRef,
}

impl order::Order for Order {
    const VERSION: u32 = 1;
}

impl Order {
    /// The order of a machine, or why it is invalid.
    pub(super) fn of(
        object: &KVMMachine,
        machine: &Machine,
        network: &Id,
        boot_data: &BootData,
    ) -> Result<Self, String> {
        let name = machine.metadata.name.clone();
        if name.len() > MAX_NAME {
            return Err(format!(
                "the name of Machine {name} is longer than the {MAX_NAME} letters of a host name"
            ));
        }
        let spec = &object.spec;
        let image = match spec.image.name.as_str() {
            "" => format!("kubernetes-{}", machine.spec.version),
            image => image.to_owned(),
        };
        Ok(Self {
            name,
            network: network.clone(),
            image,
            cpus: spec.cpus.and_then(|cpus| cpus.try_into().ok()),
            memory_mib: spec.memory_mib.and_then(|memory| memory.try_into().ok()),
            dns_servers: spec.dns_servers.clone(),
            host_volumes: spec.host_volumes.clone(),
            node_labels: spec.node_labels.clone(),
            node_taints: spec.node_taints.iter().map(NodeTaint::argument).collect(),
            boot_data: boot_data.reference.clone(),
        })
    }

    /// The order as the host's specification.
    pub(super) fn specification(&self, id: &Id, user_data: Vec<u8>) -> MachineSpec {
        let volume = |it: &HostVolume| {
            ((&it.host_path).into(), (&it.guest_path).into(), it.read_only.unwrap_or_default())
        };
        MachineSpec {
            id: id.clone(),
            network: self.network.clone(),
            name: self.name.clone(),
            provider_id: format!("{SCHEME}{id}"),
            image: self.image.clone(),
            user_data,
            cpus: self.cpus,
            memory_mib: self.memory_mib,
            dns_servers: self.dns_servers.clone(),
            host_volumes: self.host_volumes.iter().map(volume).collect(),
            node_labels: self.node_labels.clone(),
            node_taints: self.node_taints.clone(),
        }
    }
}
