//! Custom resources between wire and store: [`decode`] turns a request's body into an object of its kind,
//! [`Validator`] decides whether it may be stored.

mod decode;
mod scale;

use std::sync::Arc;

use serde_json::Value;

use crate::Schema;
use crate::bounded::Texts;
use crate::correlate::Correlated;
use crate::field::{ErrorKind, FieldError, FieldErrors};
use crate::path::Path;
use crate::rules::Rules;
use crate::validate::{self, Dialect};
use crate::{embedded, lists, meta};

pub use decode::{Decode, decode};
pub use scale::Scale;

/// Result of a validation.
#[derive(Debug, Default)]
pub struct ValidationResult {
    /// Why the object is rejected; empty if it is accepted.
    pub errors: FieldErrors,
    /// Errors in unchanged parts, which do not reject an update.
    pub warnings: Texts,
}

/// Validates objects of one version of a custom resource.
#[derive(Debug)]
pub struct Validator {
    api_version: String,
    kind: String,
    namespaced: bool,
    scale: Option<Scale>,
    schema: Arc<Schema>,
    rules: Option<Rules>,
}

impl Validator {
    /// A validator for objects of a kind.
    pub fn new(
        group: &str,
        version: &str,
        kind: &str,
        namespaced: bool,
        schema: Arc<Schema>,
        scale: Option<Scale>,
    ) -> Self {
        let rules = Rules::compile(&schema, true);
        Self {
            api_version: format!("{group}/{version}"),
            kind: kind.into(),
            namespaced,
            scale,
            schema,
            rules,
        }
    }

    /// The schema of the version.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Validates a new object.
    pub fn validate(&self, object: &Value) -> ValidationResult {
        let mut out = self.identity(object);
        if out.is_empty() {
            let root = Path::ROOT;
            out.extend(meta::validate_object_meta(
                metadata(object),
                self.namespaced,
                meta::name_is_dns_subdomain,
                &Path::at("metadata"),
            ));
            out.extend(validate::validate(&self.schema, object, Dialect::Object, &root));
            if let Some(scale) = &self.scale {
                out.extend(scale.validate_spec(object));
                out.extend(scale.validate_status(object));
            }
        }
        out.extend(embedded::validate(object, &self.schema, false, &Path::ROOT));
        out.extend(lists::validate(object, &self.schema, &Path::ROOT));
        self.with_rules(out, object, None)
    }

    /// Validates a changed object.
    pub fn validate_update(&self, new: &Value, old: &Value) -> ValidationResult {
        let mut out = self.identity(new);
        let root = Path::ROOT;
        let pair = Correlated { new, old, schema: &self.schema };
        if out.is_empty() {
            out.extend(meta::validate_object_meta_update(
                metadata(new),
                metadata(old),
                &Path::at("metadata"),
            ));
            out.extend(validate::validate_update(pair, &self.schema, &root));
            if let Some(scale) = &self.scale {
                out.extend(scale.validate_spec(new));
                out.extend(scale.validate_status(new));
            }
        }
        out.extend(embedded::validate(new, &self.schema, false, &root));
        if lists::validate(old, &self.schema, &root).is_empty() {
            out.extend(lists::validate(new, &self.schema, &root));
        }
        self.with_rules(out, new, Some(old))
    }

    /// Validates an object with a changed status. Only the status is validated against the schema; rules see the
    /// whole object.
    pub fn validate_status_update(&self, new: &Value, old: &Value) -> ValidationResult {
        let mut out = self.identity(new);
        let root = Path::ROOT;
        if out.is_empty() {
            out.extend(meta::validate_object_meta_update(
                metadata(new),
                metadata(old),
                &Path::at("metadata"),
            ));
            if let (Some(status), Some(schema)) = (new.get("status"), self.schema.properties.get("status")) {
                let at = Path::at("status");
                let pair = Correlated { new, old, schema: &self.schema };
                out.extend(match pair.key("status") {
                    Some(pair) => validate::validate_update(pair, schema, &at),
                    None => validate::validate(schema, status, Dialect::Object, &at),
                });
            }
            if let Some(scale) = &self.scale {
                out.extend(scale.validate_status(new));
            }
        }
        let errors = lists::validate(new, &self.schema, &root);
        if !errors.is_empty() && lists::validate(old, &self.schema, &root).is_empty() {
            out.extend(errors);
        }
        self.with_rules(out, new, Some(old))
    }

    fn identity(&self, object: &Value) -> FieldErrors {
        let mut out = FieldErrors::new();
        for (key, expected) in [("kind", &self.kind), ("apiVersion", &self.api_version)] {
            let found = object.get(key).and_then(Value::as_str).unwrap_or_default();
            if found != expected {
                out.push(FieldError::invalid(key, found, format!("must be {expected}")));
            }
        }
        out
    }

    /// Rules rely on the schema, so they do not run on an object that violates it.
    fn with_rules(&self, mut errors: FieldErrors, new: &Value, old: Option<&Value>) -> ValidationResult {
        let Some(rules) = &self.rules else { return ValidationResult { errors, warnings: Texts::default() } };
        let blocking = |error: &FieldError| {
            matches!(
                error.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        };
        // Errors that were not kept may be blocking.
        if errors.more() > 0 || errors.iter().any(blocking) {
            errors.push(FieldError::invalid(
                Path::ROOT,
                Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing errors \
                 to complete validation",
            ));
            return ValidationResult { errors, warnings: Texts::default() };
        }
        let outcome = rules.validate(new, old);
        errors.extend(outcome.errors);
        ValidationResult { errors, warnings: outcome.warnings }
    }
}

fn metadata(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}
