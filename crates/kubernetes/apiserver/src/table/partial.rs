//! `PartialObjectMetadata` and its list: objects without spec and status.

use serde_json::{Map, Value, json};

use crate::negotiation::MetaVersion;

/// An object's metadata alone.
pub fn metadata(object: &Value, version: MetaVersion) -> Value {
    let metadata = match &object["metadata"] {
        Value::Null => json!({}),
        metadata => metadata.clone(),
    };
    json!({ "kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata })
}

/// A list of which only the items' metadata is left.
pub fn metadata_list(list: &Value, version: MetaVersion) -> Value {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let items: Vec<Value> = items.iter().map(|item| metadata(item, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": list_metadata(list),
        "items": items,
    })
}

/// What a list's metadata hands on to its transformation.
pub fn list_metadata(list: &Value) -> Value {
    let mut out = Map::new();
    for key in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = list["metadata"].get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    out.into()
}
