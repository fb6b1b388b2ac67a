//! CustomResourceDefinitions: what the server sets when one is written, and the controller that accepts names,
//! establishes, and deletes the objects of terminating ones.

pub(crate) mod controller;

use serde_json::{Value, json};

use crate::object::Meta;
use crate::registry::Resource;

/// Finalizer that keeps a definition until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

/// Sets the condition that the objects of a definition are being deleted.
pub(crate) fn mark_for_deletion(crd: &mut Value, now: &str) {
    controller::set_condition(
        crd,
        now,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

/// Completes a new definition.
pub(crate) fn prepare_create(crd: &mut Value) {
    crd["status"] = json!({
        "conditions": [],
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": storage_version(crd).into_iter().collect::<Vec<_>>(),
    });
    crd.set_meta("generation", 1);
}

/// Restores what a request to this subresource may not change, and increments the generation.
pub(crate) fn prepare_update(crd: &mut Value, current: &Value, subresource: &str) {
    if subresource == "status" {
        crd["spec"] = current["spec"].clone();
        return;
    }
    crd["status"] = current["status"].clone();
    if crd["spec"] != current["spec"] {
        crd.set_meta("generation", current.generation() + 1);
    }
    // A stored version stays listed until its objects were migrated.
    if let Some(version) = storage_version(crd) {
        let stored = &mut crd["status"]["storedVersions"];
        match stored.as_array_mut() {
            Some(all) if all.iter().any(|v| v == version.as_str()) => {}
            Some(all) => all.push(version.into()),
            None => *stored = json!([version]),
        }
    }
}

fn storage_version(crd: &Value) -> Option<String> {
    let versions = crd["spec"]["versions"].as_array()?;
    versions.iter().find(|v| v["storage"] == true)?["name"].as_str().map(str::to_owned)
}
