//! [`Schema`]: what one value of an object may look like. Custom resources parse it from their
//! definition, built-in kinds build it from their tables; patches, apply, pruning, defaulting and
//! validation all walk the same tree.

mod parse;
mod pattern;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use pattern::Pattern;

/// Deeper nesting of schemas is refused, so that no walk recurses without bound.
pub const MAX_DEPTH: usize = 64;

/// A schema. Children are shared, so cloning is cheap and sub-schemas can be reused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// JSON type, absent for "anything" (int-or-string, preserved unknown fields, nested validations).
    pub kind: Option<TypeName>,
    /// Declared fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// What undeclared keys of an object hold.
    pub additional: Additional,
    /// What a list holds.
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
    /// Value validations, absent where there are none.
    pub checks: Option<Box<Checks>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// Strategic merge patch strategy (`merge`, `replace`, `retainKeys`, `merge,retainKeys`); built-in
    /// kinds only.
    pub patch_strategy: Option<String>,
    /// Strategic merge patch key; built-in kinds only.
    pub patch_merge_key: Option<String>,
    /// Short heading.
    pub title: String,
    /// Text for people.
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
    /// The upper bound itself is excluded.
    pub exclusive_maximum: bool,
    /// Lower bound of a number.
    pub minimum: Option<f64>,
    /// The lower bound itself is excluded.
    pub exclusive_minimum: bool,
    /// A number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Most characters of a text.
    pub max_length: Option<i64>,
    /// Fewest characters of a text.
    pub min_length: Option<i64>,
    /// Regular expression a text must match somewhere.
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
    /// All must hold.
    pub all_of: Vec<Arc<Schema>>,
    /// At least one must hold.
    pub any_of: Vec<Arc<Schema>>,
    /// Exactly one must hold.
    pub one_of: Vec<Arc<Schema>>,
    /// Must not hold.
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

/// What undeclared keys of an object hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Additional {
    /// Nothing is said about them.
    #[default]
    None,
    /// Anything, or nothing at all.
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
    /// Fixed text of a failure.
    pub message: String,
    /// CEL expression that yields the text of a failure.
    pub message_expression: String,
    /// `FieldValueInvalid` and its kin.
    pub reason: Option<String>,
    /// Path below the value that a failure points at.
    pub field_path: String,
    /// `oldSelf` is optional, so that a transition rule also runs on create.
    pub optional_old_self: Option<bool>,
}

impl TypeName {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];

    /// The word in a schema.
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

    /// The type a word names.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == name)
    }
}

impl ListType {
    /// The type a word names.
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
    /// The type a word names.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "granular" => Some(Self::Granular),
            "atomic" => Some(Self::Atomic),
            _ => None,
        }
    }
}

impl Schema {
    /// A schema of one type that says nothing else.
    pub fn of(kind: TypeName) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// The schema of a key of an object: its declared property, or what additional keys hold.
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
