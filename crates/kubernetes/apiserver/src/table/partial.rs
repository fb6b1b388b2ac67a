//! `PartialObjectMetadata` and its list: objects without spec and status.

use ::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::negotiation::{MetaVersion, Shape};
use crate::registry::Resource;
use crate::status::Status;

/// Rejects object metadata for a list, and list metadata for an object.
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
        // There, one untyped object passes for a list until its items are read.
        (Shape::MetadataList(_), false) if resource.custom().is_some() => {
            Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", "content is not a list"))
        }
        (Shape::MetadataList(_), false) => Err(Status::not_acceptable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list \
             (*{package}.{kind})"
        ))),
        _ => Ok(()),
    }
}

pub fn metadata(object: &Value, version: MetaVersion) -> Value {
    let metadata = match &object["metadata"] {
        Value::Null => json!({}),
        metadata => metadata.clone(),
    };
    json!({ "kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata })
}

/// A list with the metadata of its items.
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

/// The metadata that a transformed list keeps.
pub fn list_metadata(list: &Value) -> Value {
    let mut out = Map::new();
    for key in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = list["metadata"].get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    out.into()
}
