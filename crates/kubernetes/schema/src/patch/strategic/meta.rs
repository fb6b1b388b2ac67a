//! Patch metadata of a schema.

use std::cell::Cell;

use super::{MAX_MERGED, PatchError};
use crate::golang::quote;
use crate::schema::{Additional, Schema, TypeName};

/// The type of an object that is patched.
#[derive(Clone, Copy)]
pub(super) struct Meta<'s> {
    schema: &'s Schema,
    /// Values of lists that were merged so far, in the whole patch.
    merged: &'s Cell<usize>,
}

/// A field of a patched object: its schema, and for a list the schema of its entries.
#[derive(Clone, Copy)]
pub(super) struct Field<'s> {
    schema: &'s Schema,
    inner: &'s Schema,
    merged: &'s Cell<usize>,
}

impl<'s> Meta<'s> {
    /// `merged` counts the work of one patch.
    pub fn of(schema: &'s Schema, merged: &'s Cell<usize>) -> Self {
        Self { schema, merged }
    }

    /// A field that holds an object.
    pub fn field(self, key: &str) -> Result<Field<'s>, PatchError> {
        let schema = self.lookup(key)?;
        Ok(Field { schema, inner: schema, merged: self.merged })
    }

    /// A field that holds a list.
    pub fn list(self, key: &str) -> Result<Field<'s>, PatchError> {
        let schema = self.lookup(key)?;
        match (schema.kind, &schema.items) {
            (Some(TypeName::Array), Some(items)) if items.kind == Some(TypeName::Array) => {
                Err(PatchError::Internal("unexpected slice of slice".to_owned()))
            }
            (Some(TypeName::Array), Some(items)) => Ok(Field { schema, inner: items, merged: self.merged }),
            _ => Err(PatchError::Internal("expected slice or array type, but got: struct".to_owned())),
        }
    }

    /// The kind of the Go type.
    pub fn go_kind(self) -> &'static str {
        match self.schema.kind {
            Some(TypeName::Array) => "slice",
            Some(TypeName::String) => "string",
            Some(TypeName::Boolean) => "bool",
            Some(TypeName::Integer | TypeName::Number) => "int64",
            Some(TypeName::Object) if !matches!(self.schema.additional, Additional::Schema(_)) => "struct",
            Some(TypeName::Object) | None => "map",
        }
    }

    fn lookup(self, key: &str) -> Result<&'s Schema, PatchError> {
        let schema = self.schema;
        if schema.kind != Some(TypeName::Object) || matches!(schema.additional, Additional::Schema(_)) {
            return Err(PatchError::Internal(format!(
                "merging an object in json but data type is not struct, instead is: {}",
                self.go_kind()
            )));
        }
        // As in Go's decoder, names match case-insensitively when there is no exact match.
        let folded =
            || schema.properties.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, s)| s);
        schema.properties.get(key).or_else(folded).map(AsRef::as_ref).ok_or_else(|| {
            PatchError::Internal(format!(
                "unable to find api field in struct {} for the json field {}",
                schema.title,
                quote(key)
            ))
        })
    }
}

impl<'s> Field<'s> {
    /// The type of the object, or of the entries of the list.
    pub fn meta(self) -> Meta<'s> {
        Meta { schema: self.inner, merged: self.merged }
    }

    /// Counts values of lists that are merged.
    pub fn count_merged(self, values: usize) -> Result<(), PatchError> {
        self.merged.set(self.merged.get() + values);
        if self.merged.get() > MAX_MERGED {
            return Err(PatchError::TooMuchWork { doing: "merge", limit: MAX_MERGED });
        }
        Ok(())
    }

    /// `merge`, `replace` or nothing.
    pub fn strategy(self) -> Result<&'s str, PatchError> {
        let text = self.schema.patch_strategy.as_deref().unwrap_or_default();
        let strategies: Vec<&str> = text.split(',').collect();
        match strategies.as_slice() {
            [] | ["retainKeys"] => Ok(""),
            [one] | ["retainKeys", one] | [one, "retainKeys"] => Ok(one),
            _ => Err(PatchError::Internal(format!("unexpected patch strategy: [{}]", strategies.join(" ")))),
        }
    }

    /// The merge key of the list, or empty.
    pub fn merge_key(self) -> &'s str {
        self.schema.patch_merge_key.as_deref().unwrap_or_default()
    }
}
