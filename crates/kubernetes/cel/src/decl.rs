//! Declared types: what a structural schema says about the data a variable holds.
//!
//! A [`DeclType`] serves three readers: the type checker (which fields exist, of which type), the cost
//! estimator (how long a string, list or map may be) and the evaluator (how JSON is read: `format`, list
//! semantics, nullability).
//!
//! How a schema maps to a declared type:
//!
//! | schema | declared type |
//! |---|---|
//! | `x-kubernetes-int-or-string` | [`DeclType::int_or_string`], `maxLength` by [`DeclType::with_max_length`] |
//! | `type: boolean`, `integer`, `number` | [`DeclType::boolean`], [`DeclType::int`], [`DeclType::double`] |
//! | `type: string` | [`DeclType::string`] with [`DeclType::with_max_length`], else [`DeclType::with_enum`] |
//! | `format: byte`, `date`, `date-time`, `duration` | [`DeclType::bytes`], [`DeclType::date`], [`DeclType::date_time`], [`DeclType::duration`]; other formats are plain strings |
//! | `type: array` with `items` | [`DeclType::list`] with [`DeclType::with_max_items`] and [`DeclType::with_list_kind`] |
//! | `type: object` with `additionalProperties: {schema}` | [`DeclType::map`] with [`DeclType::with_max_properties`] |
//! | any other `type: object` | [`DeclType::object`] of its properties; unknown fields are not reachable |
//! | the root of a resource, `x-kubernetes-embedded-resource` | [`DeclType::resource`] |
//! | no type (`x-kubernetes-preserve-unknown-fields` only), arrays without `items` | [`DeclType::preserved`] |
//! | `nullable: true` | [`DeclType::nullable`] |
//!
//! A preserved type, and a list or map of one, is not *exposed*: as a property it is an undefined field to
//! the checker, and rules on it do not compile (see [`DeclType::is_exposed`]). Its data still takes part in
//! the equality of the object around it, so declare it nevertheless.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::escape::{escape, unescape};
use crate::limits::MAX_REQUEST_SIZE_BYTES;

const MAX_DURATION_SIZE_JSON: i64 = 32;
const MAX_DATETIME_SIZE_JSON: i64 = 32;
const MIN_DURATION_SIZE_JSON: i64 = 3;
const JSON_DATE_SIZE: i64 = 12;
const MIN_DATETIME_SIZE_JSON: i64 = 21;
const MIN_STRING_SIZE: i64 = 2;
const MIN_BOOL_SIZE: i64 = 4;
const MIN_NUMBER_SIZE: i64 = 1;

/// How the elements of a list are identified. Decides its equality and the meaning of `+`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ListKind {
    /// Order matters, `+` appends.
    #[default]
    Atomic,
    /// Scalars without order; `+` is union.
    Set,
    /// Objects identified by the values of these properties; `+` is merge.
    Map(Vec<String>),
}

/// A declared type. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct DeclType(Arc<Decl>);

#[derive(Clone, Debug)]
struct Decl {
    shape: Shape,
    nullable: bool,
    exposed: bool,
    max_elements: i64,
    min_serialized_size: i64,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Any value, read from JSON without a type.
    Dyn,
    IntOrString,
    /// Data without a schema: only its equality is defined.
    Preserved,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Date,
    DateTime,
    Duration,
    List {
        elem: DeclType,
        kind: ListKind,
    },
    Map {
        value: DeclType,
    },
    Object(Object),
    Optional(DeclType),
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) name: Option<Arc<str>>,
    fields: BTreeMap<String, Field>,
}

impl Object {
    /// The field of a property name, as data spells it.
    pub(crate) fn property(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// The exposed field with exactly this CEL identifier.
    pub(crate) fn exactly(&self, identifier: &str) -> Option<&Field> {
        self.field(identifier).filter(|field| field.identifier.as_deref() == Some(identifier))
    }

    /// The exposed field of a CEL identifier. Reserved words other than CEL's own tokens may be unescaped after a
    /// dot.
    pub(crate) fn field(&self, identifier: &str) -> Option<&Field> {
        let visible = |field: &&Field| field.identifier.is_some() && field.decl.is_exposed();
        unescape(identifier).and_then(|property| self.fields.get(&property)).filter(visible).filter(|field| {
            field.identifier.as_deref() == Some(identifier) || crate::escape::is_reserved(identifier)
        })
    }
}

/// A property of an object type.
#[derive(Clone, Debug)]
pub struct Field {
    property: String,
    identifier: Option<String>,
    decl: DeclType,
    required: bool,
    defaulted: bool,
}

impl Field {
    /// A property under its name in the schema. Its CEL identifier is derived from the name.
    #[must_use]
    pub fn new(property: impl Into<String>, decl: DeclType) -> Self {
        let property = property.into();
        Self { identifier: escape(&property), property, decl, required: false, defaulted: false }
    }

    /// Marks the property as listed in `required`.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Marks the property as having a `default`, so that a request may leave it out.
    #[must_use]
    pub fn defaulted(mut self) -> Self {
        self.defaulted = true;
        self
    }

    /// The declared type of the property.
    #[must_use]
    pub fn decl(&self) -> &DeclType {
        &self.decl
    }
}

impl DeclType {
    fn of(shape: Shape, min_serialized_size: i64) -> Self {
        Self(Arc::new(Decl { shape, nullable: false, exposed: true, max_elements: 0, min_serialized_size }))
    }

    fn sized(shape: Shape, min_serialized_size: i64, max_elements: i64) -> Self {
        Self(Arc::new(Decl { shape, nullable: false, exposed: true, max_elements, min_serialized_size }))
    }

    fn with(mut self, change: impl FnOnce(&mut Decl)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// A value of any type, checked at run time.
    #[must_use]
    pub fn dynamic() -> Self {
        Self::of(Shape::Dyn, 1)
    }

    /// `x-kubernetes-int-or-string`: dynamic to the checker, an int or a string at run time.
    #[must_use]
    pub fn int_or_string() -> Self {
        Self::sized(Shape::IntOrString, 1, MAX_REQUEST_SIZE_BYTES - 2)
    }

    /// Data kept without a schema. Not exposed.
    #[must_use]
    pub fn preserved() -> Self {
        Self::of(Shape::Preserved, 1).with(|decl| decl.exposed = false)
    }

    /// The null type.
    #[must_use]
    pub fn null() -> Self {
        Self::of(Shape::Null, 4)
    }

    /// `type: boolean`.
    #[must_use]
    pub fn boolean() -> Self {
        Self::of(Shape::Bool, MIN_BOOL_SIZE)
    }

    /// `type: integer`.
    #[must_use]
    pub fn int() -> Self {
        Self::of(Shape::Int, MIN_NUMBER_SIZE)
    }

    /// An unsigned integer; no schema maps to it.
    #[must_use]
    pub fn uint() -> Self {
        Self::of(Shape::Uint, 1)
    }

    /// `type: number`.
    #[must_use]
    pub fn double() -> Self {
        Self::of(Shape::Double, MIN_NUMBER_SIZE)
    }

    /// `type: string` without one of the formats that have a type of their own.
    #[must_use]
    pub fn string() -> Self {
        Self::sized(Shape::String, MIN_STRING_SIZE, MAX_REQUEST_SIZE_BYTES - 2)
    }

    /// `format: byte`.
    #[must_use]
    pub fn bytes() -> Self {
        Self::sized(Shape::Bytes, MIN_STRING_SIZE, MAX_REQUEST_SIZE_BYTES - 2)
    }

    /// `format: date`.
    #[must_use]
    pub fn date() -> Self {
        Self::sized(Shape::Date, JSON_DATE_SIZE, JSON_DATE_SIZE)
    }

    /// `format: date-time`.
    #[must_use]
    pub fn date_time() -> Self {
        Self::sized(Shape::DateTime, MIN_DATETIME_SIZE_JSON, MAX_DATETIME_SIZE_JSON)
    }

    /// `format: duration`.
    #[must_use]
    pub fn duration() -> Self {
        Self::sized(Shape::Duration, MIN_DURATION_SIZE_JSON, MAX_DURATION_SIZE_JSON)
    }

    /// `type: array`. Without `maxItems` as many elements as fit into one request.
    #[must_use]
    pub fn list(elem: DeclType) -> Self {
        let exposed = elem.is_exposed();
        let max = (MAX_REQUEST_SIZE_BYTES - 2) / (elem.0.min_serialized_size + 1);
        Self::sized(Shape::List { elem, kind: ListKind::Atomic }, 2, max).with(|decl| decl.exposed = exposed)
    }

    /// `type: object` with a schema for its `additionalProperties`. Without `maxProperties` as many entries
    /// as fit into one request.
    #[must_use]
    pub fn map(value: DeclType) -> Self {
        let exposed = value.is_exposed();
        let max = (MAX_REQUEST_SIZE_BYTES - 2) / (value.0.min_serialized_size + 6);
        Self::sized(Shape::Map { value }, 2, max).with(|decl| decl.exposed = exposed)
    }

    /// `type: object` with `properties`, or with neither those nor `additionalProperties`.
    #[must_use]
    pub fn object(fields: impl IntoIterator<Item = Field>) -> Self {
        let fields: BTreeMap<String, Field> =
            fields.into_iter().map(|field| (field.property.clone(), field)).collect();
        let min_serialized_size = 2 + fields
            .values()
            .filter(|field| field.required && !field.defaulted && field.decl.is_exposed())
            .map(|field| field.property.len() as i64 + field.decl.0.min_serialized_size + 4)
            .sum::<i64>();
        Self::of(Shape::Object(Object { name: None, fields }), min_serialized_size)
    }

    /// The root of a resource or an embedded one: `apiVersion`, `kind`, `metadata.name` and
    /// `metadata.generateName` are reachable even if the schema does not mention them.
    ///
    /// As upstream, a schema that types all four itself is taken as it is; otherwise the three properties
    /// are replaced as a whole.
    #[must_use]
    pub fn resource(fields: impl IntoIterator<Item = Field>) -> Self {
        let declared = Self::object(fields);
        let Shape::Object(object) = &declared.0.shape else { return declared };
        let is_string = |object: &Object, property: &str| {
            object.fields.get(property).is_some_and(|field| field.decl.is_text())
        };
        let has_meta = object.fields.get("metadata").is_some_and(|field| match &field.decl.0.shape {
            Shape::Object(meta) => is_string(meta, "name") && is_string(meta, "generateName"),
            _ => false,
        });
        if has_meta && is_string(object, "kind") && is_string(object, "apiVersion") {
            return declared;
        }
        // A replaced property keeps its place in `required`, which is a list of names.
        let carry = |property: &str, decl: DeclType| {
            let mut field = Field::new(property, decl);
            field.required = object.fields.get(property).is_some_and(|old| old.required);
            field
        };
        let meta =
            Self::object([Field::new("name", Self::string()), Field::new("generateName", Self::string())]);
        let mut all = object.fields.clone();
        for field in
            [carry("kind", Self::string()), carry("apiVersion", Self::string()), carry("metadata", meta)]
        {
            all.insert(field.property.clone(), field);
        }
        Self::object(all.into_values())
    }

    /// An optional value of this type, for the `oldSelf` of rules with `optionalOldSelf`.
    #[must_use]
    pub fn optional(self) -> Self {
        let (exposed, max, min) = (self.0.exposed, self.0.max_elements, self.0.min_serialized_size);
        Self::sized(Shape::Optional(self), min, max).with(|decl| decl.exposed = exposed)
    }

    /// Allows null.
    #[must_use]
    pub fn nullable(self) -> Self {
        self.with(|decl| decl.nullable = true)
    }

    /// `maxLength`. It counts code points, the cost model counts bytes: up to four for each. The formats
    /// with a type of their own have a fixed length, except `byte`.
    #[must_use]
    pub fn with_max_length(self, max_length: i64) -> Self {
        let max_length = max_length.max(0);
        self.with(|decl| match decl.shape {
            Shape::String | Shape::IntOrString => decl.max_elements = max_length.saturating_mul(4),
            Shape::Bytes => decl.max_elements = max_length,
            _ => {}
        })
    }

    /// `enum` of a string without `maxLength`: the longest value in bytes bounds the type.
    #[must_use]
    pub fn with_enum<'a>(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let longest = values.into_iter().map(|value| value.len() as i64).max().unwrap_or(0);
        self.with(|decl| {
            if matches!(decl.shape, Shape::String) {
                decl.max_elements = longest;
            }
        })
    }

    /// `maxItems`.
    #[must_use]
    pub fn with_max_items(self, max_items: i64) -> Self {
        self.with(|decl| {
            if matches!(decl.shape, Shape::List { .. }) {
                decl.max_elements = max_items.max(0);
            }
        })
    }

    /// `maxProperties` of a map.
    #[must_use]
    pub fn with_max_properties(self, max_properties: i64) -> Self {
        self.with(|decl| {
            if matches!(decl.shape, Shape::Map { .. }) {
                decl.max_elements = max_properties.max(0);
            }
        })
    }

    /// `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`.
    #[must_use]
    pub fn with_list_kind(self, list_kind: ListKind) -> Self {
        self.with(|decl| {
            if let Shape::List { kind, .. } = &mut decl.shape {
                *kind = list_kind;
            }
        })
    }

    /// Gives an object type a name of its own. An unnamed one is named after the first variable declared
    /// with it, a nested one after its path.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.with(|decl| {
            if let Shape::Object(object) = &mut decl.shape {
                object.name = Some(Arc::from(name));
            }
        })
    }

    /// Whether expressions can reach values of this type.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.0.exposed
    }

    /// The most elements (list, map), code points or bytes (string, bytes) a value can have, as the cost
    /// estimator counts them; 0 for scalars and objects.
    #[must_use]
    pub fn max_elements(&self) -> u64 {
        self.0.max_elements.max(0) as u64
    }

    /// The fewest bytes a value takes in JSON.
    #[must_use]
    pub fn min_serialized_size(&self) -> i64 {
        self.0.min_serialized_size
    }

    /// The most values of this type one request can hold; bounds how often a rule on an element of an
    /// unbounded list or map runs.
    #[must_use]
    pub fn max_cardinality(&self) -> u64 {
        (MAX_REQUEST_SIZE_BYTES / (self.0.min_serialized_size + 1)) as u64
    }

    /// The type of an exposed property, by its name in the schema.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&DeclType> {
        match &self.0.shape {
            Shape::Object(object) => object.property(name).map(Field::decl),
            _ => None,
        }
    }

    /// The type of the elements of a list or of the values of a map.
    #[must_use]
    pub fn element(&self) -> Option<&DeclType> {
        match &self.0.shape {
            Shape::List { elem, .. } => Some(elem),
            Shape::Map { value } => Some(value),
            _ => None,
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.0.shape
    }

    pub(crate) fn is_nullable(&self) -> bool {
        self.0.nullable
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the schema behind this type says `type: string`.
    fn is_text(&self) -> bool {
        matches!(self.0.shape, Shape::String | Shape::Bytes | Shape::Date | Shape::DateTime | Shape::Duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_follow_the_request_size_unless_the_schema_gives_one() {
        let table = [
            (DeclType::string(), 3_145_726),
            (DeclType::string().with_max_length(10), 40),
            (DeclType::string().with_enum(["a", "abc"]), 3),
            (DeclType::bytes().with_max_length(10), 10),
            (DeclType::date_time().with_max_length(1000), 32),
            (DeclType::date(), 12),
            (DeclType::duration(), 32),
            (DeclType::int_or_string(), 3_145_726),
            (DeclType::int_or_string().with_max_length(5), 20),
            (DeclType::list(DeclType::int()), 1_572_863),
            (DeclType::list(DeclType::string()), 1_048_575),
            (DeclType::list(DeclType::boolean()).with_max_items(7), 7),
            (DeclType::map(DeclType::string()), 393_215),
            (DeclType::map(DeclType::int()).with_max_properties(-1), 0),
            (DeclType::object([]), 0),
        ];
        for (decl, max) in table {
            assert_eq!(decl.max_elements(), max, "{decl:?}");
        }
    }

    #[test]
    fn only_required_properties_without_default_count_towards_the_smallest_object() {
        let object = DeclType::object([
            Field::new("a", DeclType::string()).required(),
            Field::new("b", DeclType::string()).required().defaulted(),
            Field::new("c", DeclType::string()),
            Field::new("d", DeclType::preserved()).required(),
        ]);
        assert_eq!(object.min_serialized_size(), 2 + 1 + 2 + 4);
        assert_eq!(object.max_cardinality(), 3_145_728 / 10);
    }

    #[test]
    fn what_cannot_be_typed_is_not_exposed() {
        assert!(!DeclType::preserved().is_exposed());
        assert!(!DeclType::list(DeclType::preserved()).is_exposed());
        assert!(!DeclType::map(DeclType::list(DeclType::preserved())).is_exposed());
        assert!(DeclType::object([Field::new("x", DeclType::preserved())]).is_exposed());
    }

    #[test]
    fn a_resource_has_its_type_and_name_even_if_the_schema_does_not_declare_them() {
        let resource = DeclType::resource([Field::new("spec", DeclType::object([]))]);
        let Shape::Object(object) = resource.shape() else { panic!() };
        for identifier in ["kind", "apiVersion", "metadata", "spec"] {
            assert!(object.field(identifier).is_some(), "{identifier}");
        }
        let metadata = resource.property("metadata").unwrap();
        assert!(metadata.property("generateName").is_some());
    }
}
