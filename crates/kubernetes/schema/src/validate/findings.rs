//! Errors of a validation walk, and upstream's notation of paths.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use crate::bounded::{MAX_TEXT, cut};
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::path::Path;

/// A path in the notation of the OpenAPI validator: `spec.list[0].key`, map keys like fields.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    parent: Option<&'a Name<'a>>,
    part: Part<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Root,
    Field(&'a str),
    /// Always with a dot, even at the root.
    Additional(&'a str),
    Index(usize),
}

impl<'a> Name<'a> {
    pub const ROOT: Name<'static> = Name { parent: None, part: Part::Root };

    pub fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Field(name) }
    }

    pub fn additional(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Additional(name) }
    }

    pub fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), part: Part::Index(index) }
    }

    pub fn is_root(&self) -> bool {
        matches!(self.part, Part::Root)
    }
}

impl Name<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.write(f)?;
        }
        match self.part {
            Part::Root => Ok(()),
            Part::Field(name) if self.parent.is_some_and(Name::is_root) => f.write_str(name),
            Part::Field(name) | Part::Additional(name) => write!(f, ".{name}"),
            Part::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// As with [`Path`], truncated to [`MAX_TEXT`] bytes.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cut(Whole(self), MAX_TEXT))
    }
}

struct Whole<'a>(&'a Name<'a>);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

/// Errors so far.
#[derive(Debug)]
pub struct Findings<'a> {
    at: &'a Path<'a>,
    errors: FieldErrors,
}

impl<'a> Findings<'a> {
    pub fn new(at: &'a Path<'a>) -> Self {
        Self { at, errors: FieldErrors::new() }
    }

    /// An empty list, for a branch whose errors may not count.
    pub fn fresh(&self) -> Self {
        Self::new(self.at)
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Number of errors, kept or not.
    pub fn len(&self) -> usize {
        self.errors.found()
    }

    pub fn truncate(&mut self, len: usize) {
        self.errors.truncate(len);
    }

    pub fn append(&mut self, other: Self) {
        self.errors.extend(other.errors);
    }

    /// The errors without duplicates.
    pub fn into_errors(mut self) -> FieldErrors {
        if self.errors.found() > 1 {
            let mut seen = HashSet::new();
            self.errors.retain(|error| seen.insert(error.to_string()));
        }
        self.errors
    }

    fn field(&self, name: &Name<'_>) -> String {
        let name = name.to_string();
        match (name.strip_prefix('.').unwrap_or(&name), self.at.is_root()) {
            ("", _) => self.at.to_string(),
            (name, true) => name.to_owned(),
            (name, false) => format!("{}.{name}", self.at),
        }
    }

    fn push(&mut self, kind: ErrorKind, name: &Name<'_>, value: Value, detail: String) {
        let field = self.field(name);
        self.errors.push(FieldError::new(kind, field, BadValue::Json(value), detail));
    }

    pub fn invalid(&mut self, name: &Name<'_>, value: Value, detail: String) {
        self.push(ErrorKind::Invalid, name, value, detail);
    }

    pub fn type_invalid(&mut self, name: &Name<'_>, value: Value, detail: String) {
        self.push(ErrorKind::TypeInvalid, name, value, detail);
    }

    pub fn required(&mut self, name: &Name<'_>) {
        self.errors.push(FieldError::required(self.field(name), ""));
    }

    pub fn not_supported(&mut self, name: &Name<'_>, value: Value, supported: &[&str]) {
        self.errors.push(FieldError::not_supported(self.field(name), value, supported));
    }

    pub fn too_long(&mut self, name: &Name<'_>, max: i64) {
        self.errors.push(FieldError::too_long(self.field(name), max));
    }

    pub fn too_many(&mut self, name: &Name<'_>, actual: i64, max: i64) {
        self.errors.push(FieldError::too_many(self.field(name), actual, max));
    }

    /// An error without a field, as upstream has it: only its text has the path.
    pub fn composite(&mut self, detail: String) {
        self.errors.push(FieldError::invalid(self.at, "", detail));
    }
}
