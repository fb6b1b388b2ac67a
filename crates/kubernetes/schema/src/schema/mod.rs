//! [`Schema`]: the structure of a value. Custom resources parse it from their CRD, built-in kinds build it from their
//! tables. Patches, apply, pruning, defaulting and validation all use the same tree.

mod parse;
mod pattern;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use pattern::Pattern;

/// Nesting limit of schemas, so that recursion is bounded.
pub const MAX_DEPTH: usize = 64;

/// A schema. Children are shared, so cloning is cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// JSON type, absent for "anything" (int-or-string, preserved unknown fields, nested validations).
    pub kind: Option<TypeName>,
    /// Declared fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Schema of undeclared keys of an object.
    pub additional: Additional,
    /// Schema of list entries.
    pub items: Option<Arc<Schema>>,
    /// Whether null is a value.
    pub nullable: bool,
    /// Value of an absent field.
    pub default: Option<Value>,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`; absent means atomic.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`; absent means granular.
    pub map_type: Option<MapType>,
    /// Value validations; `None` if there are none.
    pub checks: Option<Box<Checks>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// Strategic merge patch strategy (`merge`, `replace`, `retainKeys`, `merge,retainKeys`); built-in
    /// kinds only.
    pub patch_strategy: Option<String>,
    /// Strategic merge patch key; built-in kinds only.
    pub patch_merge_key: Option<String>,
    /// Title; not validated.
    pub title: String,
    /// Description; not validated.
    pub description: String,
}

/// Value validations of a [`Schema`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checks {
    /// Names of fields that must be present.
    pub required: Vec<String>,
    /// The only values allowed, if any are listed.
    pub enumeration: Vec<Value>,
    /// Named format, such as `date-time`.
    pub format: Option<String>,
    /// Upper bound of a number.
    pub maximum: Option<f64>,
    /// Whether the upper bound is exclusive.
    pub exclusive_maximum: bool,
    /// Lower bound of a number.
    pub minimum: Option<f64>,
    /// Whether the lower bound is exclusive.
    pub exclusive_minimum: bool,
    /// A number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Longest string in characters.
    pub max_length: Option<i64>,
    /// Shortest string in characters.
    pub min_length: Option<i64>,
    /// Regular expression that a string must match somewhere.
    pub pattern: Option<Pattern>,
    /// Most entries of a list.
    pub max_items: Option<i64>,
    /// Fewest entries of a list.
    pub min_items: Option<i64>,
    /// No two entries of a list may be equal.
    pub unique_items: bool,
    /// Most keys of an object.
    pub max_properties: Option<i64>,
    /// Fewest keys of an object.
    pub min_properties: Option<i64>,
    /// All must match.
    pub all_of: Vec<Arc<Schema>>,
    /// At least one must match.
    pub any_of: Vec<Arc<Schema>>,
    /// Exactly one must match.
    pub one_of: Vec<Arc<Schema>>,
    /// Must not match.
    pub not: Option<Arc<Schema>>,
}

/// JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeName {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

/// Schema of undeclared keys of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Additional {
    /// Not specified.
    #[default]
    None,
    /// `true` allows any value, `false` none.
    Any(bool),
    /// Values of this schema.
    Schema(Arc<Schema>),
}

/// How a list merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As one value.
    Atomic,
    /// By entry.
    Set,
    /// By the key fields of its entries.
    Map,
}

/// How an object merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapType {
    /// By field.
    Granular,
    /// As one value.
    Atomic,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    /// CEL expression that must be true.
    pub rule: String,
    /// Fixed message of a failure.
    pub message: String,
    /// CEL expression for the message of a failure.
    pub message_expression: String,
    /// Reason of the error, for example `FieldValueInvalid`.
    pub reason: Option<String>,
    /// Path below the value that a failure refers to.
    pub field_path: String,
    /// Whether `oldSelf` is optional, so that a transition rule also runs on create.
    pub optional_old_self: Option<bool>,
}

impl TypeName {
    /// All types, in a fixed order.
    pub const ALL: [Self; 6] =
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];

    /// The name in a schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == name)
    }
}

impl ListType {
    /// The list type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "atomic" => Some(Self::Atomic),
            "set" => Some(Self::Set),
            "map" => Some(Self::Map),
            _ => None,
        }
    }
}

impl MapType {
    /// The map type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "granular" => Some(Self::Granular),
            "atomic" => Some(Self::Atomic),
            _ => None,
        }
    }
}

impl Schema {
    /// A schema with a type and nothing else.
    pub fn of(kind: TypeName) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// The schema of a key of an object: its declared property, or that of additional keys.
    pub fn child(&self, key: &str) -> Option<&Arc<Schema>> {
        self.properties.get(key).or_else(|| self.additional_schema())
    }

    /// The schema of undeclared keys, if there is one.
    pub fn additional_schema(&self) -> Option<&Arc<Schema>> {
        match &self.additional {
            Additional::Schema(schema) => Some(schema),
            Additional::None | Additional::Any(_) => None,
        }
    }
}
