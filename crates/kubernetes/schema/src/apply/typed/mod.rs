//! Values with a schema: which are leaves, which merge field by field, and how list entries are identified.
//!
//! [`Type`] interprets a [`Schema`] as upstream derives its merge types from published schemas. An untyped field may
//! hold a scalar, a list or an object, so a type resolves to an [`Atom`] that lists the possible kinds, and the
//! actual value narrows it down.

mod atomics;
mod compare;
mod extract;
mod field_set;
mod items;
mod merge;
mod reconcile;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

pub use atomics::atomics;
pub use compare::{Comparison, compare};
pub use extract::{extract, remove};
pub use field_set::{field_set, with_named_parents};
pub use merge::merge;
pub use reconcile::reconcile;
pub use validate::{Duplicates, validate};

use super::metadata;
use crate::bounded::{MAX_TEXT, Texts, cut_text};
use crate::schema::{Additional, ListType, MapType, Schema, TypeName};

/// The type of a value.
#[derive(Clone, Copy)]
pub struct Type<'s>(Source<'s>);

#[derive(Clone, Copy)]
enum Source<'s> {
    /// Declared by a schema. `preserve` is inherited from ancestors that keep unknown fields; `object` adds the
    /// fields of every object.
    Declared { schema: &'s Schema, preserve: bool, object: bool },
    /// Without a declaration: objects merge by field, lists are leaves.
    Deduced,
    /// Without a declaration, inside a leaf.
    Opaque,
    /// No value is allowed here.
    Undeclared,
}

/// The kinds of value a type allows.
#[derive(Clone, Copy)]
struct Atom<'s> {
    map: Option<MapAtom<'s>>,
    scalar: Option<Scalar>,
    list: Option<ListAtom<'s>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy)]
struct MapAtom<'s> {
    declared: Option<&'s Schema>,
    preserve: bool,
    object: bool,
    element: Type<'s>,
    atomic: bool,
}

#[derive(Clone, Copy)]
struct ListAtom<'s> {
    element: Type<'s>,
    associative: bool,
    keys: Keys<'s>,
}

#[derive(Clone, Copy)]
enum Keys<'s> {
    Many(&'s [String]),
    One(&'s str),
}

static STRING: LazyLock<Schema> = LazyLock::new(|| Schema::of(TypeName::String));

impl<'s> Type<'s> {
    /// The type of whole objects of a schema: they have `apiVersion`, `kind` and `metadata` whether the
    /// schema declares them or not.
    pub fn object(schema: &'s Schema) -> Self {
        Self(Source::Declared { schema, preserve: false, object: true })
    }

    /// The type of a value of a schema.
    pub fn of(schema: &'s Schema) -> Self {
        Self(Source::Declared { schema, preserve: false, object: false })
    }

    /// The type of objects without a schema.
    pub fn deduced() -> Self {
        Self(Source::Deduced)
    }

    fn child(schema: &'s Schema, preserve: bool) -> Self {
        Self(Source::Declared { schema, preserve, object: false })
    }

    fn is_declared(self) -> bool {
        !matches!(self.0, Source::Undeclared)
    }

    /// Whether entries of this type are only known by their values. Sets of such entries are not changed when a
    /// schema changes.
    fn is_deduced(self) -> bool {
        match self.0 {
            Source::Deduced => true,
            Source::Declared { .. } => self.atom().scalar == Some(Scalar::Untyped),
            Source::Opaque | Source::Undeclared => false,
        }
    }

    fn atom(self) -> Atom<'s> {
        let (schema, preserve, object) = match self.0 {
            Source::Declared { schema, preserve, object } => (schema, preserve, object),
            Source::Deduced => return Atom::untyped(false),
            Source::Opaque => return Atom::untyped(true),
            Source::Undeclared => return Atom { map: None, scalar: None, list: None },
        };
        let none = Atom { map: None, scalar: None, list: None };
        match schema.kind {
            None => Atom {
                map: Some(MapAtom::of(schema, preserve, object)),
                scalar: Some(Scalar::Untyped),
                list: Some(ListAtom::of(schema, preserve)),
            },
            Some(TypeName::Object) => Atom { map: Some(MapAtom::of(schema, preserve, object)), ..none },
            Some(TypeName::Array) => Atom { list: Some(ListAtom::of(schema, preserve)), ..none },
            Some(TypeName::Integer | TypeName::Number) => Atom { scalar: Some(Scalar::Numeric), ..none },
            Some(TypeName::Boolean) => Atom { scalar: Some(Scalar::Boolean), ..none },
            Some(TypeName::String) => {
                let format = schema.checks.as_ref().and_then(|checks| checks.format.as_deref());
                let plain = matches!(format, None | Some("" | "byte")) && !schema.int_or_string;
                Atom { scalar: Some(if plain { Scalar::String } else { Scalar::Untyped }), ..none }
            }
        }
    }
}

impl<'s> Atom<'s> {
    fn untyped(opaque: bool) -> Self {
        let leaf = Type(Source::Opaque);
        Self {
            map: Some(MapAtom {
                declared: None,
                preserve: false,
                object: false,
                element: if opaque { leaf } else { Type(Source::Deduced) },
                atomic: opaque,
            }),
            scalar: Some(Scalar::Untyped),
            list: Some(ListAtom { element: leaf, associative: false, keys: Keys::Many(&[]) }),
        }
    }

    /// The kinds left for an actual value. All of them for null and for a value of a kind that is not allowed.
    fn for_value(self, value: &Value) -> Self {
        let none = Self { map: None, scalar: None, list: None };
        match value {
            Value::Null => self,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => match self.scalar {
                Some(_) => Self { scalar: self.scalar, ..none },
                None => self,
            },
            Value::Array(_) => match self.list {
                Some(_) => Self { list: self.list, ..none },
                None => self,
            },
            Value::Object(_) => match self.map {
                Some(_) => Self { map: self.map, ..none },
                None => self,
            },
        }
    }

    fn same_kinds(&self, other: &Self) -> bool {
        self.map.is_some() == other.map.is_some()
            && self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
    }

    fn kind(self) -> AtomKind<'s> {
        match (self.map, self.scalar, self.list) {
            (Some(map), _, _) => AtomKind::Map(map),
            (None, Some(scalar), _) => AtomKind::Scalar(scalar),
            (None, None, Some(list)) => AtomKind::List(list),
            (None, None, None) => AtomKind::None,
        }
    }
}

/// The kind as which a walk treats a value.
enum AtomKind<'s> {
    Map(MapAtom<'s>),
    Scalar(Scalar),
    List(ListAtom<'s>),
    None,
}

impl<'s> MapAtom<'s> {
    fn of(schema: &'s Schema, preserve: bool, object: bool) -> Self {
        let preserve = preserve || schema.preserve_unknown;
        let object = object || schema.embedded_resource;
        let element = match &schema.additional {
            // An object without declarations accepts anything.
            Additional::None if preserve || (schema.properties.is_empty() && !object) => {
                Type(Source::Deduced)
            }
            Additional::None | Additional::Any(false) => Type(Source::Undeclared),
            Additional::Any(true) => Type(Source::Deduced),
            Additional::Schema(schema) => Type::child(schema, preserve),
        };
        let atomic = schema.map_type == Some(MapType::Atomic);
        Self { declared: Some(schema), preserve, object, element, atomic }
    }

    /// The type of a field, if it is declared.
    fn field(&self, name: &str) -> Option<Type<'s>> {
        if self.object {
            match name {
                "apiVersion" | "kind" => return Some(Type::of(&STRING)),
                "metadata" => return Some(Type::of(metadata::schema())),
                _ => {}
            }
        }
        let schema = self.declared?.properties.get(name)?;
        Some(Type::child(schema, self.preserve))
    }

    /// The type of any key: its declared field, or the type of additional keys.
    fn child(&self, name: &str) -> Type<'s> {
        self.field(name).unwrap_or(self.element)
    }

    fn declares_nothing(&self) -> bool {
        !self.object && self.declared.is_none_or(|schema| schema.properties.is_empty())
    }

    fn default_of(&self, name: &str) -> Option<&'s Value> {
        self.declared?.properties.get(name)?.default.as_ref().filter(|value| !value.is_null())
    }
}

impl<'s> ListAtom<'s> {
    fn of(schema: &'s Schema, preserve: bool) -> Self {
        let preserve = preserve || schema.preserve_unknown;
        let element =
            schema.items.as_ref().map_or(Type(Source::Opaque), |items| Type::child(items, preserve));
        // Without a list type, the strategy of strategic merge patches decides, as upstream.
        let merges = || matches!(schema.patch_strategy.as_deref(), Some("merge" | "merge,retainKeys"));
        let (associative, keys) = match schema.list_type {
            Some(ListType::Atomic) => (false, Keys::Many(&[])),
            Some(ListType::Set) => (true, Keys::Many(&[])),
            Some(ListType::Map) => (true, Keys::Many(&schema.list_map_keys)),
            None if merges() => (true, schema.patch_merge_key.as_deref().map_or(Keys::Many(&[]), Keys::One)),
            None => (false, Keys::Many(&[])),
        };
        Self { element, associative, keys }
    }
}

impl<'s> Keys<'s> {
    fn iter(self) -> impl Iterator<Item = &'s str> {
        let (many, one) = match self {
            Keys::Many(keys) => (keys, None),
            Keys::One(key) => (&[][..], Some(key)),
        };
        many.iter().map(String::as_str).chain(one)
    }

    fn is_empty(self) -> bool {
        matches!(self, Keys::Many([]))
    }
}

/// One mismatch between a value and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedError {
    /// Path, in the form of messages.
    pub path: String,
    /// Description of the mismatch.
    pub message: String,
}

/// All mismatches of a value; never empty when returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypedErrors {
    errors: Vec<TypedError>,
    /// Errors beyond the limit, only counted.
    more: usize,
}

impl TypedErrors {
    /// Adds an error at a path, or counts it beyond the limit.
    fn push(&mut self, path: impl FnOnce() -> String, message: impl Into<String>) {
        if self.errors.len() >= Texts::MAX_ENTRIES {
            self.more += 1;
            return;
        }
        let message = cut_text(message.into(), MAX_TEXT);
        self.errors.push(TypedError { path: path(), message });
    }

    fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Number of errors, kept or not.
    fn found(&self) -> usize {
        self.errors.len() + self.more
    }

    /// Keeps only the first `found` errors.
    fn truncate(&mut self, found: usize) {
        self.errors.truncate(found);
        self.more = self.more.min(found - self.errors.len());
    }
}

impl fmt::Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl fmt::Display for TypedErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.errors.as_slice() {
            return one.fmt(f);
        }
        f.write_str("errors:")?;
        self.errors.iter().try_for_each(|error| write!(f, "\n  {error}"))?;
        if self.more > 0 { write!(f, "\n  and {} more", self.more) } else { Ok(()) }
    }
}

impl std::error::Error for TypedErrors {}
