//! What may be in a field, beyond its Rust type: patterns and rules that several kinds share.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Patterns of names, as Kubernetes writes them.
pub mod pattern {
    /// A DNS subdomain: labels joined by dots.
    pub const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    /// A DNS label.
    pub const DNS_LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    /// Type of a condition: a word, or a domain, a slash and a word.
    pub const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
    /// A range such as `[3-5]`.
    pub const RANGE: &str = r"^\[[0-9]+-[0-9]+\]$";
    /// A kind.
    pub const KIND: &str = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
    /// A group and a version.
    pub const API_VERSION: &str =
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$";
    /// Key of a taint: a word, or a domain, a slash and a word.
    pub const TAINT_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
    /// Value of a label.
    pub const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
}

/// No two entries are equal.
pub(crate) const UNIQUE: &str = "self.all(x, self.exists_one(y, x == y))";
/// No two entries have the same name.
pub(crate) const UNIQUE_NAMES: &str = "self.all(x, self.exists_one(y, x.name == y.name))";

/// An entry of `x-kubernetes-validations`.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// An integer without a format.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}
