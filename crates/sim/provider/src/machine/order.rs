//! The order of a machine: its complete specification without the boot data.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Machine, label};
use capstan_guest::vm::{GuestFault, Image, VmSpec};
use capstan_provider_kit::{BootData, BootDataRef, order};
use serde::{Deserialize, Serialize};

use super::{MACHINE_TAG, SCHEME};
use crate::types::SimMachine;

/// Default size of a machine.
pub(crate) const CPUS: u32 = 2;
pub(crate) const MEMORY_MIB: u64 = 4096;

/// The order of a machine. The site assigns its address, like a cloud's DHCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Host name.
    pub name: String,
    /// Kubernetes version of the image; `None` if it has no kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    pub cpus: u32,
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
    /// Tags, including our mark.
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<GuestFault>,
    pub boot_data: BootDataRef,
}

impl order::Order for Order {
    const VERSION: u32 = 1;
}

impl Order {
    pub(super) fn of(id: &str, object: &SimMachine, machine: &Machine, boot_data: &BootData) -> Self {
        let spec = &object.spec;
        let version = Some(&spec.image.kubernetes).filter(|version| !version.is_empty());
        let version = version.unwrap_or(&machine.spec.version);
        let tags = [(MACHINE_TAG, id), (label::CLUSTER_NAME, machine.spec.cluster_name.as_str())];
        Self {
            name: machine.metadata.name.clone(),
            kubernetes: Some(version.clone()).filter(|version| !version.is_empty()),
            cpus: spec.cpus.and_then(|cpus| cpus.try_into().ok()).unwrap_or(CPUS),
            memory_mib: spec.memory_mib.and_then(|memory| memory.try_into().ok()).unwrap_or(MEMORY_MIB),
            tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            faults: spec.guest_faults(),
            boot_data: boot_data.reference.clone(),
        }
    }

    /// The order as the site's specification.
    pub(super) fn specification(&self, id: &str, user_data: Vec<u8>) -> VmSpec {
        VmSpec {
            id: id.to_owned(),
            name: self.name.clone(),
            user_data,
            image: Image { kubernetes: self.kubernetes.clone() },
            address: None,
            provider_id: Some(format!("{SCHEME}{id}")),
            cpus: self.cpus,
            memory_mib: self.memory_mib,
            tags: self.tags.clone(),
            faults: self.faults.clone(),
        }
    }
}
