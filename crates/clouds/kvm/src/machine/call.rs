//! What is asked of the host.

use std::sync::Arc;

use capstan_capi_core::infrastructure::boot_data;
use capstan_capi_core::owners;
use capstan_capi_types::core::Machine;
use capstan_controller::{Call, Outcome, View};
use capstan_object::Key;
use serde::{Deserialize, Serialize};

use super::{SCHEME, observe};
use crate::backend::{Backend, BackendError, Id, MachineSpec};
use crate::code;
use crate::types::{KVMMachine, NodeTaint};

/// Longest name of a machine: it becomes a host name.
const LONGEST_NAME: usize = 63;

/// What is asked of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    /// Create a machine.
    Create {
        /// Its id.
        id: Id,
    },
    /// Destroy a machine.
    Destroy {
        /// Its id.
        id: Id,
    },
}

impl MachineCall {
    /// The machine it is about.
    pub fn id(&self) -> &Id {
        match self {
            Self::Create { id } | Self::Destroy { id } => id,
        }
    }
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        self.id().to_string()
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { id } => format!("create-machine {id}"),
            Self::Destroy { id } => format!("destroy-machine {id}"),
        }
    }
}

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<KVMMachine>,
    view: &View,
    backend: Arc<dyn Backend>,
) -> Outcome {
    let work: Box<dyn FnOnce() -> Result<(), BackendError> + Send> = match call {
        MachineCall::Create { id } => match specification(id, object, view).await {
            Ok(spec) => Box::new(move || backend.create(&spec)),
            Err(why) => return Outcome::failed(code::BOOT_DATA, why),
        },
        MachineCall::Destroy { id } => {
            let id = id.clone();
            Box::new(move || backend.destroy(&id))
        }
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(())) => Outcome::done(),
        Ok(Err(error)) => Outcome::failed(code::HOST, error.to_string()),
        Err(error) => Outcome::unknown(error.to_string()),
    }
}

/// The machine as the host is told of it, or why that cannot be said.
async fn specification(id: &Id, object: &KVMMachine, view: &View) -> Result<MachineSpec, String> {
    let meta = &object.metadata;
    let said = |error: capstan_controller::ObserveError| error.to_string();
    let machine = owners::of::<Machine>(meta, view).map_err(said)?;
    let machine = machine.ok_or_else(|| format!("KVMMachine {} has lost its Machine", meta.name))?;
    let name = machine.metadata.name.clone();
    if name.len() > LONGEST_NAME {
        return Err(format!(
            "the name of Machine {name} is longer than the {LONGEST_NAME} letters of a host name"
        ));
    }
    let network = observe::observe(object, view).map_err(said)?.network;
    let network = network.ok_or_else(|| format!("the cluster of Machine {name} has no KVMCluster"))?;
    let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
    let user_data = boot_data(&Key::new(meta.namespace.as_str(), secret), view).await?;
    let spec = &object.spec;
    let image = match spec.image.name.as_str() {
        "" => format!("kubernetes-{}", machine.spec.version),
        image => image.to_owned(),
    };
    Ok(MachineSpec {
        id: id.clone(),
        network,
        name,
        provider_id: format!("{SCHEME}{id}"),
        image,
        user_data,
        cpus: spec.cpus.and_then(|cpus| cpus.try_into().ok()),
        memory_mib: spec.memory_mib.and_then(|memory| memory.try_into().ok()),
        dns_servers: spec.dns_servers.clone(),
        host_volumes: spec
            .host_volumes
            .iter()
            .map(|it| ((&it.host_path).into(), (&it.guest_path).into(), it.read_only.unwrap_or_default()))
            .collect(),
        node_labels: spec.node_labels.clone(),
        node_taints: spec.node_taints.iter().map(NodeTaint::argument).collect(),
    })
}
