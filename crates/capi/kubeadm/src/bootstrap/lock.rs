//! The lock that lets only one machine run `kubeadm init` in a cluster.

use capstan_capi_types::core::{Cluster, label};
use capstan_object::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use capstan_capi_core::secret::ConfigMap;

const INFORMATION: &str = "lock-information";

pub(super) fn name(cluster: &str) -> String {
    format!("{cluster}-lock")
}

/// The machine that holds the lock; `None` if the lock is malformed.
pub(super) fn holder(lock: &ConfigMap) -> Option<String> {
    let information: Value = serde_json::from_str(lock.data.get(INFORMATION)?).ok()?;
    Some(information["machineName"].as_str()?.to_owned())
}

pub(super) fn held_by(cluster: &Cluster, machine: &str) -> ConfigMap {
    let mut metadata = ObjectMeta::named(cluster.metadata.namespace.clone(), name(&cluster.metadata.name));
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    metadata.owner_references.push(OwnerReference::to(cluster));
    let information = json!({"machineName": machine}).to_string();
    ConfigMap { metadata, data: [(INFORMATION.to_owned(), information)].into() }
}
