//! Installs definitions: creates or updates those that differ, and waits until they are served.

use std::time::Duration;

use capstan_controller::{ApiError, Client, KindName, Patch};
use capstan_object::{Key, Scope};
use serde_json::{Value, json};

/// Polling interval and timeout until a definition is served.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The server rejected a request.
    #[error("the definition {name} could not be {done}")]
    Refused {
        name: String,
        /// Operation that failed.
        done: &'static str,
        source: ApiError,
    },
    /// The server does not serve a definition.
    #[error(
        "the definition {name} is not served after {}s: see the conditions in its status",
        TIMEOUT.as_secs()
    )]
    NotServed { name: String },
}

fn kind() -> KindName {
    let mut kind = KindName::namespaced(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    kind.scope = Scope::Cluster;
    kind
}

fn key(definition: &Value) -> Key {
    Key::new("", definition["metadata"]["name"].as_str().unwrap_or_default())
}

/// Installs definitions and returns once the server serves them. Unchanged ones are not written.
pub async fn install(client: &Client, definitions: &[Value]) -> Result<(), InstallError> {
    for definition in definitions {
        let current = read(client, definition).await?;
        if current.as_ref().is_some_and(|current| is_up_to_date(current, definition)) {
            continue;
        }
        let name = key(definition);
        let written = match current {
            None => client.create(&kind(), "", definition).await,
            Some(current) => client.replace(&kind(), &name, None, &updated(current, definition)).await,
        };
        written.map_err(|source| InstallError::Refused { name: name.name, done: "written", source })?;
    }
    establish(client, definitions).await
}

/// Sets the conversion of existing definitions; nothing else is written.
pub async fn set_conversion(client: &Client, definitions: &[Value]) -> Result<(), InstallError> {
    for definition in definitions {
        let (name, wanted) = (key(definition), &definition["spec"]["conversion"]);
        let Some(current) = read(client, definition).await?.filter(|_| !wanted.is_null()) else { continue };
        if holds(&current["spec"]["conversion"], wanted) {
            continue;
        }
        let patch = Patch::Json(json!([{"op": "add", "path": "/spec/conversion", "value": wanted}]));
        let written = client.patch(&kind(), &name, None, &patch).await;
        written.map_err(|source| InstallError::Refused { name: name.name, done: "patched", source })?;
    }
    Ok(())
}

/// Returns once a server serves the definitions, which may be installed by another process.
pub async fn establish(client: &Client, definitions: &[Value]) -> Result<(), InstallError> {
    let begun = tokio::time::Instant::now();
    for definition in definitions {
        while !read(client, definition).await?.is_some_and(|current| is_served(&current)) {
            if begun.elapsed() > TIMEOUT {
                return Err(InstallError::NotServed { name: key(definition).name });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

async fn read(client: &Client, definition: &Value) -> Result<Option<Value>, InstallError> {
    let key = key(definition);
    let refused = |source| InstallError::Refused { name: key.name.clone(), done: "read", source };
    let reply = client.get_raw(&kind(), &key).await.map_err(refused)?;
    reply.map(|reply| reply.parse()).transpose().map_err(refused)
}

fn is_served(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
}

/// Whether a definition is up to date: versions must be equal, elsewhere servers add defaults.
fn is_up_to_date(current: &Value, wanted: &Value) -> bool {
    let versions = |definition: &Value| without_empty(&definition["spec"]["versions"]);
    versions(current) == versions(wanted)
        && holds(&current["metadata"], &wanted["metadata"])
        && holds(&current["spec"], &without_versions(&wanted["spec"]))
}

/// The current object with the desired fields; labels and annotations of others stay.
fn updated(mut current: Value, wanted: &Value) -> Value {
    for field in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
            current["metadata"][field][key] = value.clone();
        }
    }
    current["spec"] = wanted["spec"].clone();
    current
}

fn without_versions(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("versions");
    }
    spec
}

/// Everything in `wanted` is in `current`.
fn holds(current: &Value, wanted: &Value) -> bool {
    match (current, wanted) {
        (Value::Object(current), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| current.get(key).is_some_and(|current| holds(current, wanted)))
        }
        _ => current == wanted,
    }
}

/// Servers omit empty lists and may return integers for whole numbers.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
            let kept = fields.iter().filter(|(_, value)| !is_empty(value));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_empty(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(whole) if !number.is_f64() || whole.fract() == 0.0 => whole.into(),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_servers_are_no_difference() {
        let wanted = json!({
            "metadata": {"name": "a.g", "labels": {"x": "1"}},
            "spec": {"group": "g", "names": {"kind": "A"}, "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"maximum": 3}}, "additionalPrinterColumns": []},
            ]},
        });
        let mut current = json!({
            "metadata": {"name": "a.g", "labels": {"x": "1", "other": ""}, "uid": "u"},
            "spec": {"group": "g", "names": {"kind": "A", "listKind": "AList"}, "conversion": {"strategy": "None"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"maximum": 3.0}}}]},
            "status": {},
        });
        assert!(is_up_to_date(&current, &wanted));
        for (path, value) in [
            ("/metadata/labels/x", json!("2")),
            ("/spec/names/kind", json!("B")),
            ("/spec/versions/0/schema/openAPIV3Schema/maximum", json!(4)),
            ("/spec/versions/0/schema", json!({"openAPIV3Schema": {"maximum": 3, "minimum": 1}})),
        ] {
            let before = current.clone();
            *current.pointer_mut(path).expect(path) = value;
            assert!(!is_up_to_date(&current, &wanted), "{path}");
            current = before;
        }
    }
}
