//! Removes the finalizers that keep deleted claims and volumes while they are in use.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::keyed::{Keyed, Progress};
use crate::admission::{CLAIM_PROTECTION, CLASS_PROTECTION, VOLUME_PROTECTION};
use crate::auth::bucket::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, VOLUME_ATTRIBUTES_CLASSES};
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::status::Result;

const USER: &str = "system:kube-controller-manager";

/// The buckets that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    matches!(bucket, PERSISTENT_VOLUME_CLAIMS | PERSISTENT_VOLUMES | PODS | VOLUME_ATTRIBUTES_CLASSES)
}

/// Keys are `BUCKET KEY`.
pub(crate) struct VolumeProtection;

impl Keyed for VolumeProtection {
    const WORK: &'static str = "removing the protection of a volume or claim";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        [PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES]
            .into_iter()
            .flat_map(|bucket| terminating(parts, bucket, ""))
            .collect()
    }

    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        if &*change.bucket == PODS {
            let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
            dirty.extend(terminating(parts, PERSISTENT_VOLUME_CLAIMS, &format!("{namespace}/")));
            return;
        }
        if !change.gone {
            dirty.insert(format!("{} {}", change.bucket, change.key));
        }
        // A claim or volume may have been the last one of its class.
        dirty.extend(terminating(parts, VOLUME_ATTRIBUTES_CLASSES, ""));
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, key: &str) -> Result<Progress> {
        let (bucket, key) = key.split_once(' ').unwrap_or_default();
        let (group, plural, finalizer) = match bucket {
            PERSISTENT_VOLUMES => ("", "persistentvolumes", VOLUME_PROTECTION),
            VOLUME_ATTRIBUTES_CLASSES => ("storage.k8s.io", "volumeattributesclasses", CLASS_PROTECTION),
            _ => ("", "persistentvolumeclaims", CLAIM_PROTECTION),
        };
        let Some(object) = stored(parts, bucket, key) else { return Ok(Progress::Done) };
        let is_protected = object.finalizers().iter().any(|known| known == finalizer);
        if !object.is_terminating() || !is_protected || in_use(parts, bucket, &object) {
            return Ok(Progress::Done);
        }
        let registry = parts.registry.load_full();
        let Some(resource) = registry.find(group, "v1", plural).cloned() else { return Ok(Progress::Done) };
        let call = parts.internal_call(USER, resource, object.namespace(), object.name());
        let removal = Unprotected(finalizer);
        match change(&call, &removal, &WriteOptions::default(), WriteKind::Update).await {
            Err(status) if status.reason != "NotFound" => Err(status),
            _ => Ok(Progress::Done),
        }
    }
}

fn terminating(parts: &ServerParts, bucket: &str, prefix: &str) -> Vec<String> {
    let snapshot = parts.store.snapshot(bucket);
    let entries = snapshot.range(prefix, None);
    let found = entries.filter(|entry| {
        serde_json::from_slice::<Value>(&entry.value).is_ok_and(|object| object.is_terminating())
    });
    found.map(|entry| format!("{bucket} {}", entry.key)).collect()
}

fn stored(parts: &ServerParts, bucket: &str, key: &str) -> Option<Value> {
    serde_json::from_slice(&parts.store.get(bucket, key)?.value).ok()
}

/// A volume is in use while it is bound; a class while a claim or volume names it; a claim while a Pod that has not
/// ended names it.
fn in_use(parts: &ServerParts, bucket: &str, object: &Value) -> bool {
    match bucket {
        PERSISTENT_VOLUMES => return object["status"]["phase"] == "Bound",
        VOLUME_ATTRIBUTES_CLASSES => return class_in_use(parts, object.name()),
        _ => {}
    }
    let snapshot = parts.store.snapshot(PODS);
    let namespace = format!("{}/", object.namespace());
    let mut pods = snapshot.range(&namespace, None);
    pods.any(|entry| serde_json::from_slice::<Value>(&entry.value).is_ok_and(|pod| uses(&pod, object.name())))
}

fn class_in_use(parts: &ServerParts, class: &str) -> bool {
    let names = |object: &Value| {
        object["spec"]["volumeAttributesClassName"] == class
            || object["status"]["currentVolumeAttributesClassName"] == class
            || object["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"] == class
    };
    [PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES].iter().any(|bucket| {
        let snapshot = parts.store.snapshot(bucket);
        let mut entries = snapshot.range("", None);
        entries.any(|entry| serde_json::from_slice::<Value>(&entry.value).is_ok_and(|object| names(&object)))
    })
}

fn uses(pod: &Value, claim: &str) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    !ended
        && volumes.any(|volume| {
            let named = volume["persistentVolumeClaim"]["claimName"] == claim;
            // The claim of an ephemeral volume is named after Pod and volume.
            let own = volume["name"].as_str().map(|name| format!("{}-{name}", pod.name()));
            named || volume["ephemeral"].is_object() && own.as_deref() == Some(claim)
        })
}

/// An object without its finalizer.
struct Unprotected(&'static str);

impl Change for Unprotected {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let mut object = current.clone();
        let mut finalizers = object.finalizers();
        finalizers.retain(|known| known != self.0);
        object.set_meta("finalizers", serde_json::json!(finalizers));
        if finalizers.is_empty() {
            object.meta_mut().remove("finalizers");
        }
        Ok(Step::Write { object, manager: call.manager("") })
    }
}
