//! What holds of every provider's kinds: what is set once stays.

use capstan_capi_types::admission::{FieldError, IMMUTABLE, validate_template_meta};
use capstan_capi_types::core::{APIEndpoint, TemplateMeta};
use capstan_object::Object;

/// An endpoint is a host and a port, and stays where it is.
pub fn validate_endpoint(endpoint: &APIEndpoint, old: Option<&APIEndpoint>, errors: &mut Vec<FieldError>) {
    let path = "spec.controlPlaneEndpoint";
    if old.is_some_and(|old| *old != APIEndpoint::default() && old != endpoint) {
        errors.push(FieldError::forbidden(path, IMMUTABLE));
    }
    if endpoint.host.is_empty() != (endpoint.port == 0) {
        errors.push(FieldError::required(path, "a host and a port belong together"));
    }
}

/// A machine is made once: its specification stays, but for the provider id, which is written once.
pub fn validate_machine_stays<S: Clone + PartialEq>(
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

/// What objects are made from does not change under those that were made. `changed` says whether `spec.template.spec` did.
pub fn validate_template<T: Object>(metadata: &TemplateMeta, changed: bool, errors: &mut Vec<FieldError>) {
    validate_template_meta(metadata, "spec.template.metadata", errors);
    if changed {
        let kind = T::KIND.kind;
        let what =
            format!("{kind} spec.template.spec field is immutable. Please create a new resource instead.");
        errors.push(FieldError::forbidden("spec.template.spec", what));
    }
}

/// No two machines have one identity, so a template has none.
pub fn validate_template_has_no_id(provider_id: &str, errors: &mut Vec<FieldError>) {
    if !provider_id.is_empty() {
        errors.push(FieldError::forbidden("spec.template.spec.providerID", "cannot be set in templates"));
    }
}
