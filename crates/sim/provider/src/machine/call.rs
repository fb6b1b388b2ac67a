//! What is asked of the site.

use std::sync::Arc;

use capstan_capi_core::infrastructure::boot_data;
use capstan_capi_core::owners;
use capstan_capi_types::core::{Machine, label};
use capstan_controller::{Call, Outcome, Resolution, View};
use capstan_guest::SiteError;
use capstan_guest::vm::{Image, VmSpec};
use capstan_object::Key;
use capstan_sim_site::{Ground, GroundError};
use serde::{Deserialize, Serialize};

use super::observe::is_ours;
use super::{MACHINE_TAG, SCHEME};
use crate::types::SimMachine;
use crate::{code, site};

/// Cores and memory of a machine that asks for none.
pub(crate) const CPUS: u32 = 2;
pub(crate) const MEMORY_MIB: u64 = 4096;

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

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<SimMachine>,
    view: &View,
    ground: &Ground,
) -> Outcome {
    match call {
        MachineCall::Create { id } => {
            let spec = match specification(id, object, view).await {
                Ok(spec) => spec,
                Err(why) => return Outcome::failed(code::BOOT_DATA, why),
            };
            match ground.create(spec).await {
                // Once is all there is of an id: it exists, or did. A look tells which.
                Ok(_) | Err(GroundError::Refused(SiteError::Exists(_))) => Outcome::done(),
                Err(error) => site::outcome(error),
            }
        }
        MachineCall::Destroy { id } => match ground.vm(id).await {
            Ok(Some(vm)) if !is_ours(&vm) => {
                Outcome::failed(code::REFUSED, format!("machine {id} does not carry our mark"))
            }
            Ok(Some(_)) => match ground.destroy(id).await {
                Ok(()) | Err(GroundError::Refused(SiteError::NoSuchVm(_))) => Outcome::done(),
                Err(error) => site::outcome(error),
            },
            Ok(None) => Outcome::done(),
            Err(error) => site::outcome(error),
        },
    }
}

/// What became of a call that nobody heard the end of. The site answers for certain.
pub(super) async fn resolve(call: &MachineCall, ground: &Ground) -> Result<Resolution, GroundError> {
    let (id, wanted) = match call {
        MachineCall::Create { id } => (id, true),
        MachineCall::Destroy { id } => (id, false),
    };
    let there = ground.vm(id).await?.is_some();
    Ok(if there == wanted { Resolution::happened() } else { Resolution::DidNotHappen })
}

/// The machine as the site is told of it, or why that cannot be said.
async fn specification(id: &str, object: &SimMachine, view: &View) -> Result<VmSpec, String> {
    let meta = &object.metadata;
    let machine = owners::of::<Machine>(meta, view).map_err(|error| error.to_string())?;
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
