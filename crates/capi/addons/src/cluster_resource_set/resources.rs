//! The manifests in a ConfigMap or Secret: parsing, order, hash.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_object::{ObjectMeta, object};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

object!(ConfigMapOutline, "" / "v1", "ConfigMap", "configmaps", Namespaced);

/// A ConfigMap without its data: enough to notice changes, and small enough to cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMapOutline {
    pub metadata: ObjectMeta,
}

/// The documents in a ConfigMap or Secret, sorted by key; those of a Secret are base64.
pub fn documents(resource: &Value, encoded: bool) -> Result<Vec<String>, String> {
    let Some(data) = resource["data"].as_object() else { return Err("it has no data".to_owned()) };
    let sorted: BTreeMap<_, _> = data.iter().collect();
    let mut documents = Vec::new();
    for (key, value) in sorted {
        let text = value.as_str().ok_or_else(|| format!("{key} is not text"))?;
        if encoded {
            // Invalid base64 counts as empty, as upstream does.
            let bytes = STANDARD.decode(text).unwrap_or_default();
            documents.push(String::from_utf8_lossy(&bytes).into_owned());
        } else {
            documents.push(text.to_owned());
        }
    }
    Ok(documents)
}

/// The hash recorded in bindings; equals upstream's.
pub fn hash(documents: &[String]) -> String {
    let mut hasher = Sha256::new();
    for document in documents {
        hasher.update(document.as_bytes());
    }
    let digest = hasher.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The objects in documents; within a document, prerequisites come first.
pub fn objects(documents: &[String]) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    for document in documents {
        let mut objects = Vec::new();
        for value in parse(document)? {
            match value {
                Value::Array(list) => objects.extend(list),
                Value::Null => {}
                value => objects.push(value),
            }
        }
        objects.sort_by_key(|object| position(object["kind"].as_str().unwrap_or_default()));
        all.extend(objects);
    }
    if let Some(bad) =
        all.iter().find(|object| object["kind"].as_str().is_none() || object["apiVersion"].as_str().is_none())
    {
        let name = bad["metadata"]["name"].as_str().unwrap_or("(no name)");
        return Err(format!("{name} has no apiVersion or no kind"));
    }
    Ok(all)
}

/// YAML documents, or JSON, which is YAML too.
fn parse(document: &str) -> Result<Vec<Value>, String> {
    if document.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_saphyr::from_multiple(document).map_err(|error| error.to_string())
}

/// Position of kinds that are applied before all others.
fn position(kind: &str) -> usize {
    const FIRST: [&str; 12] = [
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Secret",
        "ConfigMap",
        "ServiceAccount",
        "LimitRange",
        "Pod",
        "ReplicaSet",
        "Endpoint",
    ];
    FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_is_over_all_documents_in_order_of_their_keys() {
        let one = documents(&json!({"data": {"b": "2", "a": "1"}}), false);
        assert_eq!(one, Ok(vec!["1".to_owned(), "2".to_owned()]));
        let secret = documents(&json!({"data": {"a": "MQ==", "b": "Mg=="}}), true);
        assert_eq!(secret, one);
        // printf 12 | sha256sum
        let expected = "sha256:6b51d431df5d7f141cbececcf79edf3dd861c3b4069f0b11661a3eefacbba918";
        assert_eq!(one.map(|documents| hash(&documents)), Ok(expected.to_owned()));
        assert_eq!(documents(&json!({}), false), Err("it has no data".to_owned()));
    }

    #[test]
    fn prerequisites_are_applied_first() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n";
        let list = r#"[{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]"#;
        let objects = objects(&[text.to_owned(), list.to_owned(), String::new()]).expect("objects");
        let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().expect("a kind")).collect();
        assert_eq!(kinds, ["Namespace", "Deployment", "Secret"]);
        assert!(super::objects(&["a: b".to_owned()]).is_err());
    }
}
