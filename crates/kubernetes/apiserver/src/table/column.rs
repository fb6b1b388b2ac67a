//! Column definitions.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub format: &'a str,
    pub description: &'a str,
    pub priority: i64,
}

/// The object's name. kubectl adds `kind/` when it lists several kinds.
pub const NAME: Header<'static> = text("Name", "name of the object").named();
pub const AGE: Header<'static> = text("Age", "time since the object was created");

/// A string column.
pub const fn text(name: &'static str, description: &'static str) -> Header<'static> {
    of(name, "string", description)
}

/// An integer column.
pub const fn integer(name: &'static str, description: &'static str) -> Header<'static> {
    of(name, "integer", description)
}

/// A boolean column.
pub const fn boolean(name: &'static str, description: &'static str) -> Header<'static> {
    of(name, "boolean", description)
}

/// A date column.
pub const fn date(name: &'static str, description: &'static str) -> Header<'static> {
    of(name, "date", description)
}

const fn of(name: &'static str, kind: &'static str, description: &'static str) -> Header<'static> {
    Header { name, kind, format: "", description, priority: 0 }
}

impl Header<'_> {
    /// Shown only with `-o wide`.
    pub const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// A column of names.
    pub const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    /// The same column as a date.
    pub const fn as_date(mut self) -> Self {
        self.kind = "date";
        self
    }

    /// The `TableColumnDefinition`.
    pub fn to_json(self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}
