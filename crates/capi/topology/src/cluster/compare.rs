//! What applying would change, as the API server sees it.

use std::sync::Arc;

use capstan_capi_core::contract::External;
use capstan_capi_types::core::annotation;
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::{Key, Object};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{ClusterTopologies, Difference};
use crate::desired::Intent;

/// The parts of an object that a topology may own.
fn essence(object: &Value) -> (Value, Value) {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    annotations.remove(annotation::TOPOLOGY_DRY_RUN);
    annotations.remove(annotation::CONVERSION_DATA);
    let metadata = json!({
        "labels": metadata["labels"].as_object().cloned().unwrap_or_default(),
        "annotations": annotations,
        "ownerReferences": metadata["ownerReferences"].as_array().cloned().unwrap_or_default(),
    });
    (metadata, object["spec"].clone())
}

fn digest(parts: &[&Value]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.to_string().as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ClusterTopologies {
    /// What applying an intent would change in an object that is there.
    pub(super) async fn difference(
        &self,
        view: &View,
        cluster: &Key,
        intent: &Intent,
        current: &External,
    ) -> Result<Option<Difference>, ObserveError> {
        self.compare(view, cluster, &intent.kind, &intent.body, current.value(), |value| value).await
    }

    /// The same for an object of a known type.
    pub(super) async fn difference_of<T: Object>(
        &self,
        view: &View,
        cluster: &Key,
        desired: &T,
        current: &Arc<T>,
    ) -> Result<Option<Difference>, ObserveError> {
        let unreadable = |error: serde_json::Error| ObserveError::Unreadable {
            kind: T::KIND.kind.to_owned(),
            key: current.key(),
            why: error.to_string(),
        };
        let desired = capstan_object::to_value(desired).map_err(unreadable)?;
        let current = capstan_object::to_value(&**current).map_err(unreadable)?;
        // Both as the type has them: what it omits as default is no difference.
        let typed =
            |value: Value| match T::deserialize(&value).map(|object| capstan_object::to_value(&object)) {
                Ok(Ok(typed)) => typed,
                _ => value,
            };
        self.compare(view, cluster, &KindName::of::<T>(), &desired, &current, typed).await
    }

    async fn compare(
        &self,
        view: &View,
        cluster: &Key,
        kind: &KindName,
        desired: &Value,
        current: &Value,
        typed: impl Fn(Value) -> Value,
    ) -> Result<Option<Difference>, ObserveError> {
        let name = desired["metadata"]["name"].as_str().unwrap_or_default();
        let id = format!("{kind} {name}");
        let (metadata, spec) = essence(current);
        let state = digest(&[&metadata, &spec, desired]);
        if self.unchanged.lock().get(cluster).and_then(|known| known.get(&id)) == Some(&state) {
            return Ok(None);
        }
        let mut body = desired.clone();
        body["metadata"]["annotations"][annotation::TOPOLOGY_DRY_RUN] = "".into();
        let key = Key::new(cluster.namespace.as_str(), name);
        let reply = match view.client().dry_run_apply(kind, &key, &body).await {
            Ok(reply) => reply,
            // A template that must not change is refused; so is what is invalid, and the attempt to apply it reports why.
            Err(error) if error.is_invalid() => return Ok(Some(Difference::Spec)),
            Err(error) => return Err(error.into()),
        };
        let (new_metadata, new_spec) = essence(&typed(reply.parse::<Value>()?));
        if new_spec != spec {
            return Ok(Some(Difference::Spec));
        }
        if new_metadata != metadata {
            return Ok(Some(Difference::Metadata));
        }
        self.unchanged.lock().entry(cluster.clone()).or_default().insert(id, state);
        Ok(None)
    }
}
