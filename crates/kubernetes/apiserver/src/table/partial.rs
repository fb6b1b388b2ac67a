//! `PartialObjectMetadata` and its list: objects without spec and status.

use serde_json::{Map, Value, json};

use crate::negotiation::{MetaVersion, Shape};
use crate::registry::Resource;
use crate::status::Status;

/// Refuses the metadata of an object where there is a list, and the other way round.
pub fn check_shape(shape: Shape, resource: &Resource, list: bool) -> Result<(), Status> {
    let package = match resource.group.split('.').next() {
        _ if resource.custom().is_some() => "unstructured",
        None | Some("" | "events") => "core",
        Some(first) => first,
    };
    let (kind, list_kind) = match resource.custom() {
        Some(_) => ("Unstructured", "UnstructuredList"),
        None => (resource.kind.as_str(), resource.list_kind.as_str()),
    };
    match (shape, list) {
        (Shape::Metadata(_), true) => Err(Status::not_acceptable(format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{list_kind})"
        ))),
        (Shape::MetadataList(_), false) => Err(Status::not_acceptable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list \
             (*{package}.{kind})"
        ))),
        _ => Ok(()),
    }
}

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
