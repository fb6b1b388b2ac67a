//! What is asked of the site.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::{Machine, label};
use capstan_controller::{Call, KindName, Outcome, Resolution, View};
use capstan_guest::vm::{Image, VmSpec};
use capstan_guest::{Site, SiteError};
use capstan_object::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::observe::is_ours;
use super::{MACHINE_TAG, SCHEME};
use crate::types::SimMachine;
use crate::{code, owner};

/// Cores and memory of a machine that asks for none.
const CPUS: u32 = 2;
const MEMORY_MIB: u64 = 4096;

/// Largest boot data that a machine takes: what an API server keeps in a Secret.
const MOST_BOOT_DATA: usize = 1 << 20;

/// What is asked of the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    /// Create a machine.
    Create {
        /// Its id.
        id: String,
    },
    /// Destroy a machine.
    Destroy {
        /// Its id.
        id: String,
    },
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { id } | Self::Destroy { id } => id.clone(),
        }
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { id } => format!("create-vm {id}"),
            Self::Destroy { id } => format!("destroy-vm {id}"),
        }
    }
}

pub(super) async fn make(call: &MachineCall, object: &Arc<SimMachine>, view: &View, site: &Site) -> Outcome {
    match call {
        MachineCall::Create { id } => {
            let spec = match specification(id, object, view).await {
                Ok(spec) => spec,
                Err(why) => return Outcome::failed(code::BOOT_DATA, why),
            };
            match site.create(spec) {
                // Once is all there is of an id: it exists, or did. A look tells which.
                Ok(_) | Err(SiteError::Exists(_)) => Outcome::done(),
                Err(error) => Outcome::failed(code::REFUSED, error.to_string()),
            }
        }
        MachineCall::Destroy { id } => match site.vm(id) {
            Some(vm) if !is_ours(&vm) => {
                Outcome::failed(code::REFUSED, format!("machine {id} does not carry our mark"))
            }
            Some(_) => match site.destroy(id) {
                Ok(()) | Err(SiteError::NoSuchVm(_)) => Outcome::done(),
                Err(error) => Outcome::failed(code::REFUSED, error.to_string()),
            },
            None => Outcome::done(),
        },
    }
}

/// What became of a call that nobody heard the end of. The site answers for certain.
pub(super) fn resolve(call: &MachineCall, site: &Site) -> Resolution {
    match call {
        MachineCall::Create { id } if site.vm(id).is_some() => Resolution::happened(),
        MachineCall::Destroy { id } if site.vm(id).is_none() => Resolution::happened(),
        _ => Resolution::DidNotHappen,
    }
}

/// The machine as the site is told of it, or why that cannot be said.
async fn specification(id: &str, object: &SimMachine, view: &View) -> Result<VmSpec, String> {
    let meta = &object.metadata;
    let machine = owner::of::<Machine>(meta, view).map_err(|error| error.to_string())?;
    let machine = machine.ok_or_else(|| format!("SimMachine {} has lost its Machine", meta.name))?;
    let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
    let user_data = boot_data(&Key::new(meta.namespace.as_str(), secret), view).await?;
    let spec = &object.spec;
    let version = Some(&spec.image.kubernetes).filter(|version| !version.is_empty());
    let version = version.unwrap_or(&machine.spec.version);
    let tags = [(MACHINE_TAG, id), (label::CLUSTER_NAME, machine.spec.cluster_name.as_str())];
    Ok(VmSpec {
        id: id.to_owned(),
        name: machine.metadata.name.clone(),
        user_data,
        image: Image { kubernetes: Some(version.clone()).filter(|version| !version.is_empty()) },
        address: None,
        provider_id: Some(format!("{SCHEME}{id}")),
        cpus: spec.cpus.and_then(|cpus| cpus.try_into().ok()).unwrap_or(CPUS),
        memory_mib: spec.memory_mib.and_then(|memory| memory.try_into().ok()).unwrap_or(MEMORY_MIB),
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        faults: spec.guest_faults(),
    })
}

/// The boot data in a Secret.
async fn boot_data(secret: &Key, view: &View) -> Result<Vec<u8>, String> {
    let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
    let read = view.client().get_raw(&secrets, secret).await;
    let reply = read.map_err(|error| format!("Secret {secret} cannot be read: {error}"))?;
    let reply = reply.ok_or_else(|| format!("there is no Secret {secret}"))?;
    let object: Value = reply.parse().map_err(|_| format!("Secret {secret} cannot be read"))?;
    let text = object["data"]["value"].as_str();
    let data = text.and_then(|text| STANDARD.decode(text).ok());
    data.filter(|data| data.len() <= MOST_BOOT_DATA)
        .ok_or_else(|| format!("Secret {secret} has no boot data in its key \"value\""))
}
