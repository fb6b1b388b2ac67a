//! What providers of infrastructure have in common: the frame of their decisions, what a machine waits for, its boot data.

pub mod console;
mod frame;

pub use frame::{decide_cluster, decide_machine};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::{Cluster, Machine, label, reason};
use capstan_controller::{KindName, View};
use capstan_object::Key;
use serde_json::Value;

/// Largest boot data that a machine takes: what an API server keeps in a Secret.
const MOST_BOOT_DATA: usize = 1 << 20;

/// What must be there before a machine is made: a reason and words for it.
pub fn waits_for(machine: &Machine, cluster: &Cluster) -> Option<(&'static str, &'static str)> {
    let done = &cluster.status.initialization;
    let named = machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty());
    if done.infrastructure_provisioned != Some(true) {
        return Some((reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, "the infrastructure of the cluster"));
    }
    if named {
        return None;
    }
    let worker = !machine.metadata.labels.contains_key(label::CONTROL_PLANE);
    if worker && done.control_plane_initialized != Some(true) {
        return Some((
            reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            "the first machine of the control plane",
        ));
    }
    Some((reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the machine"))
}

/// The boot data in a Secret.
pub async fn boot_data(secret: &Key, view: &View) -> Result<Vec<u8>, String> {
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
