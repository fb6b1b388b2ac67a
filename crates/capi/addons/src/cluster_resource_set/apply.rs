//! Applies manifests to a workload cluster.

use std::collections::BTreeMap;

use capstan_capi_types::addons::ClusterResourceSetStrategy as Strategy;
use capstan_controller::{ApiError, Client, Deletion, KindName, Patch, Propagation};
use capstan_object::{Key, Scope};
use serde_json::{Map, Value};

/// Applies all objects and returns the errors; one failure does not stop the others.
pub async fn all(client: &Client, objects: Vec<Value>, strategy: Strategy) -> Vec<String> {
    let mut kinds = BTreeMap::new();
    let mut errors = Vec::new();
    for object in objects {
        if let Err(error) = one(client, &object, strategy, &mut kinds).await {
            errors.push(format!("{}: {error}", title(&object)));
        }
    }
    errors
}

/// Deletes all objects and returns the errors; one failure does not stop the others. What is gone counts as deleted.
pub async fn delete_all(client: &Client, objects: &[Value]) -> Vec<String> {
    let mut kinds = BTreeMap::new();
    let mut errors = Vec::new();
    for object in objects {
        if let Err(error) = delete(client, object, &mut kinds).await {
            errors.push(format!("{}: {error}", title(object)));
        }
    }
    errors
}

async fn delete(client: &Client, object: &Value, kinds: &mut Kinds) -> Result<(), String> {
    let kind = kind_of(client, object, kinds).await?;
    let deletion = Deletion { propagation: Some(Propagation::Background), ..Deletion::default() };
    match client.delete(&kind, &key(&kind, object), &deletion).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error_chain(&error)),
    }
}

fn title(object: &Value) -> String {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", of(&object["kind"]), of(&object["metadata"]["name"]))
}

fn key(kind: &KindName, object: &Value) -> Key {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match kind.scope {
        Scope::Cluster => Key::new("", name),
        Scope::Namespaced => Key::new(object["metadata"]["namespace"].as_str().unwrap_or("default"), name),
    }
}

type Kinds = BTreeMap<(String, String), KindName>;

async fn one(client: &Client, object: &Value, strategy: Strategy, kinds: &mut Kinds) -> Result<(), String> {
    let kind = kind_of(client, object, kinds).await?;
    let key = key(&kind, object);
    let there = match strategy {
        Strategy::ApplyOnce => None,
        Strategy::Reconcile => client.get_raw(&kind, &key).await.map_err(|error| error_chain(&error))?,
    };
    let Some(there) = there else {
        return match client.create(&kind, &key.namespace, object).await {
            Ok(_) => Ok(()),
            // It existed before: with ApplyOnce that counts as applied.
            Err(error) if error.is_already_exists() && strategy == Strategy::ApplyOnce => Ok(()),
            Err(error) => Err(error_chain(&error)),
        };
    };
    let there: Value = there.parse().map_err(|error| error_chain(&error))?;
    let change = change(&there, object);
    if change.is_empty() {
        return Ok(());
    }
    client
        .patch(&kind, &key, None, &Patch::Merge(change.into()))
        .await
        .map(drop)
        .map_err(|error| error_chain(&error))
}

/// The merge patch from an object to its manifest. Fields that the manifest lacks are removed, except those that the
/// server sets.
fn change(there: &Value, wanted: &Value) -> Map<String, Value> {
    let mut patch = difference(there, wanted);
    for servers in ["status", "apiVersion", "kind"] {
        patch.remove(servers);
    }
    patch.remove("metadata");
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        let empty = Value::Object(Map::new());
        let of = |value: &Value| value["metadata"].get(field).cloned().unwrap_or_else(|| empty.clone());
        let changed = difference(&of(there), &of(wanted));
        if !changed.is_empty() {
            metadata.insert(field.to_owned(), changed.into());
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    patch
}

fn difference(from: &Value, to: &Value) -> Map<String, Value> {
    let mut patch = Map::new();
    let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else { return patch };
    for (name, value) in to {
        match from.get(name) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                let inner = difference(old, value);
                if !inner.is_empty() {
                    patch.insert(name.clone(), inner.into());
                }
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    patch
}

/// The names of an object's kind, as the workload cluster serves it.
async fn kind_of(client: &Client, object: &Value, kinds: &mut Kinds) -> Result<KindName, String> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let id = (api_version.to_owned(), kind.to_owned());
    if let Some(known) = kinds.get(&id) {
        return Ok(known.clone());
    }
    let served = client.served(api_version, kind).await.map_err(|error| error_chain(&error))?;
    let name = served.ok_or_else(|| format!("no matches for kind {kind:?} in version {api_version:?}"))?;
    kinds.insert(id, name.clone());
    Ok(name)
}

pub(super) fn error_chain(error: &ApiError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_missing_in_the_manifest_are_removed_except_the_servers() {
        let there = json!({
            "metadata": {"name": "x", "uid": "u", "labels": {"a": "1", "b": "2"}},
            "data": {"old": "1", "same": "2"}, "status": {"phase": "y"},
        });
        let wanted =
            json!({"metadata": {"name": "x", "labels": {"a": "1"}}, "data": {"same": "2", "new": "3"}});
        let expected = json!({"metadata": {"labels": {"b": null}}, "data": {"old": null, "new": "3"}});
        assert_eq!(Value::Object(change(&there, &wanted)), expected);
        assert_eq!(
            change(&there, &json!({"metadata": there["metadata"], "data": there["data"]})),
            Map::new()
        );
    }
}
