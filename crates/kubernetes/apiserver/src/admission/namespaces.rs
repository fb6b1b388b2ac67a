//! Selection of requests by the labels of their namespace.

use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use super::{AdmissionAttributes, Operation};
use crate::auth::{ObjectSource, bucket};
use crate::status::{Result, Status};

/// Whether the labels of the request's namespace match. Requests without a namespace always do.
pub(super) fn selected(
    selector: &Result<LabelSelector, String>,
    attributes: &AdmissionAttributes,
    object: Option<&Value>,
    source: &dyn ObjectSource,
) -> Result<bool> {
    let is_namespace = attributes.resource.resource == "namespaces";
    if attributes.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = selector.as_ref().map_err(Status::internal)?;
    if selector.is_empty() {
        return Ok(true);
    }
    let labels = |namespace: &Value| selector.matches_labels(namespace["metadata"]["labels"].as_object());
    let written = matches!(attributes.operation, Operation::Create | Operation::Update);
    if is_namespace && attributes.subresource.is_empty() && written {
        return Ok(object.is_some_and(labels));
    }
    let namespace = source.get(bucket::NAMESPACES, &attributes.namespace);
    let namespace = namespace.ok_or_else(|| Status::not_found("", "namespaces", &attributes.namespace))?;
    Ok(labels(&namespace))
}
