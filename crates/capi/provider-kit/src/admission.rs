//! Validation that all providers' kinds have in common: immutable fields.

use capstan_capi_types::admission::{FieldError, IMMUTABLE, validate_template_meta};
use capstan_capi_types::core::{APIEndpoint, TemplateMeta};
use capstan_object::Object;

/// An endpoint has a host and a port, and is immutable once set.
pub fn validate_endpoint(endpoint: &APIEndpoint, old: Option<&APIEndpoint>, errors: &mut Vec<FieldError>) {
    let path = "spec.controlPlaneEndpoint";
    if old.is_some_and(|old| *old != APIEndpoint::default() && old != endpoint) {
        errors.push(FieldError::forbidden(path, IMMUTABLE));
    }
    if endpoint.host.is_empty() != (endpoint.port == 0) {
        errors.push(FieldError::required(path, "a host and a port belong together"));
    }
}

/// The spec of a machine is immutable, except that the provider id is set once.
pub fn validate_machine_immutable<S: Clone + PartialEq>(
    spec: &S,
    old: Option<&S>,
    provider_id: fn(&mut S) -> &mut String,
    errors: &mut Vec<FieldError>,
) {
    let Some(old) = old else { return };
    let (mut old, mut new) = (old.clone(), spec.clone());
    let before = std::mem::take(provider_id(&mut old));
    let after = std::mem::take(provider_id(&mut new));
    if !before.is_empty() && before != after {
        errors.push(FieldError::forbidden("spec.providerID", IMMUTABLE));
    }
    if old != new {
        errors.push(FieldError::forbidden("spec", IMMUTABLE));
    }
}

/// A template is immutable. `changed` is whether `spec.template.spec` changed.
pub fn validate_template<T: Object>(metadata: &TemplateMeta, changed: bool, errors: &mut Vec<FieldError>) {
    validate_template_meta(metadata, "spec.template.metadata", errors);
    if changed {
        let kind = T::KIND.kind;
        let what =
            format!("{kind} spec.template.spec field is immutable. Please create a new resource instead.");
        errors.push(FieldError::forbidden("spec.template.spec", what));
    }
}

/// A template has no provider id, which is unique to a machine.
pub fn validate_template_without_id(provider_id: &str, errors: &mut Vec<FieldError>) {
    if !provider_id.is_empty() {
        errors.push(FieldError::forbidden("spec.template.spec.providerID", "cannot be set in templates"));
    }
}
