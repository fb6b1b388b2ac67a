//! Checks the type of a value: only its shape, no bounds or formats.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{AtomKind, ListAtom, MapAtom, Scalar, Type, TypedErrors};
use crate::apply::fieldpath::{Path, PathElement, PathText};
use crate::patch::go;

/// Whether a list may have two entries of the same key or value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// For stored objects.
    Allowed,
    /// For applied configurations.
    Refused,
}

/// Checks a value against a type.
///
/// # Errors
/// All mismatches, except that an undeclared field ends the search in its object and an entry without identity ends
/// it in its list.
pub fn validate(value: &Value, of: Type<'_>, duplicates: Duplicates) -> Result<(), TypedErrors> {
    let mut walk = Validate { duplicates, path: Vec::new(), errors: TypedErrors::default() };
    walk.value(value, of);
    if walk.errors.is_empty() { Ok(()) } else { Err(walk.errors) }
}

struct Validate<'v> {
    duplicates: Duplicates,
    path: Vec<Step<'v>>,
    errors: TypedErrors,
}

/// One path element, rendered lazily: nearly every value matches its type.
enum Step<'v> {
    Field(&'v str),
    Element(PathElement),
}

impl<'v> Validate<'v> {
    fn error(&mut self, message: impl Into<String>) {
        let element = |step: &Step<'v>| match step {
            Step::Field(name) => PathElement::field(*name),
            Step::Element(element) => element.clone(),
        };
        let path = || PathText(&self.path.iter().map(element).collect::<Path>()).to_string();
        self.errors.push(path, message);
    }

    fn below(&mut self, step: Step<'v>, value: &'v Value, of: Type<'_>) {
        self.path.push(step);
        self.value(value, of);
        self.path.pop();
    }

    fn value(&mut self, value: &'v Value, of: Type<'_>) {
        match of.atom().for_value(value).kind() {
            AtomKind::Map(map) => self.map(value, map),
            AtomKind::Scalar(scalar) => {
                if let Some(message) = scalar_error(scalar, value) {
                    self.error(message);
                }
            }
            AtomKind::List(list) => self.list(value, list),
            AtomKind::None => self.error("schema error: invalid atom: inlined"),
        }
    }

    fn map(&mut self, value: &'v Value, atom: MapAtom<'_>) {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return,
            other => return self.error(format!("expected map, got &{{{}}}", go::v(other))),
        };
        for (name, value) in map {
            let of = atom.child(name);
            if of.is_declared() {
                self.below(Step::Field(name), value, of);
            } else {
                self.path.push(Step::Field(name));
                self.error("field not declared in schema");
                self.path.pop();
                return;
            }
        }
    }

    fn list(&mut self, value: &'v Value, atom: ListAtom<'_>) {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return,
            other => return self.error(format!("expected list, got &{{{}}}", go::v(other))),
        };
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            let element = if atom.associative {
                match atom.element_of(item) {
                    Ok(element) => {
                        let new = seen.insert(element.clone());
                        if !new && self.duplicates == Duplicates::Refused {
                            self.error(format!("duplicate entries for key {element}"));
                        }
                        element
                    }
                    Err(why) => return self.error(format!("element {i}: {why}")),
                }
            } else {
                PathElement::Index(i64::try_from(i).unwrap_or(i64::MAX))
            };
            self.below(Step::Element(element), item, atom.element);
        }
    }
}

/// The mismatch of a scalar, if any. Null matches any scalar.
pub(super) fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    let (fits, message): (bool, fn(&Value) -> String) = match scalar {
        Scalar::Numeric => {
            (value.is_number(), |v| format!("expected numeric (int or float), got {}", go::type_name(v)))
        }
        Scalar::String => (value.is_string(), |v| {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::sharp_v(v))
        }),
        Scalar::Boolean => (value.is_boolean(), |v| format!("expected boolean, got &{{{}}}", go::v(v))),
        Scalar::Untyped => (value.is_number() || value.is_string() || value.is_boolean(), |v| {
            format!("expected any scalar, got &{{{}}}", go::v(v))
        }),
    };
    (!fits && !value.is_null()).then(|| message(value))
}
