//! Jobs select their pods by generated labels.

use serde_json::{Value, json};

use super::{Object, child};

/// Labels the pod template and selects by it, unless `manualSelector` is set.
pub(super) fn generate_selector(job: &mut Object) {
    let of =
        |job: &Object, key: &str| job.get("metadata").and_then(|m| m.get(key)).cloned().unwrap_or(json!(""));
    let (name, uid) = (of(job, "name"), of(job, "uid"));
    let spec = child(job, "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        (CONTROLLER_UID, &uid),
    ] {
        labels.entry(key).or_insert_with(|| value.clone());
    }
    let labels = labels.clone();
    child(child(spec, "selector"), "matchLabels").entry(CONTROLLER_UID).or_insert(uid);
    // A job without labels gets those of its pods: upstream defaults what it reads back.
    let own = child(child(job, "metadata"), "labels");
    if own.is_empty() {
        *own = labels;
    }
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
