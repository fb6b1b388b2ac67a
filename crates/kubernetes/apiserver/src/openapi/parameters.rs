//! Parameters of operations.

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    pub name: &'static str,
    /// `query` or `path`.
    pub place: &'static str,
    /// JSON type.
    pub kind: &'static str,
    pub description: String,
}

impl Parameter {
    fn of(&(name, kind, description): &(&'static str, &'static str, &'static str)) -> Self {
        Self { name, place: "query", kind, description: description.into() }
    }

    /// The namespace in the path.
    pub fn namespace() -> Self {
        let description = "namespace of the object".into();
        Self { name: "namespace", place: "path", kind: "string", description }
    }

    /// The name in the path.
    pub fn name(kind: &str) -> Self {
        Self { name: "name", place: "path", kind: "string", description: format!("name of the {kind}") }
    }

    /// The parameter in OpenAPI v3.
    pub fn v3(&self) -> Value {
        let mut out = json!({
            "name": self.name, "in": self.place, "description": self.description,
            "schema": { "type": self.kind, "uniqueItems": true },
        });
        if self.place == "path" {
            out["required"] = true.into();
        }
        out
    }

    /// The parameter in OpenAPI v2.
    pub fn v2(&self) -> Value {
        let mut out = json!({
            "name": self.name, "in": self.place, "description": self.description,
            "type": self.kind, "uniqueItems": true,
        });
        if self.place == "path" {
            out["required"] = true.into();
        }
        out
    }
}

/// The options of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Options {
    None,
    Get,
    List,
    Create,
    Update,
    Patch,
    Delete,
    /// Deletion options and those of a list except for watching.
    DeleteCollection,
}

type Row = (&'static str, &'static str, &'static str);

const PRETTY: Row = ("pretty", "string", "'true' indents the answer");
const DRY_RUN: Row = ("dryRun", "string", "'All' checks everything and stores nothing");
const FIELD_MANAGER: Row = ("fieldManager", "string", "name of the field manager of the changes");
const FIELD_VALIDATION: Row =
    ("fieldValidation", "string", "what to do with unknown or repeated fields: Ignore, Warn or Strict");
const FORCE: Row = ("force", "boolean", "take over fields that others manage (apply only)");
const RESOURCE_VERSION: Row = ("resourceVersion", "string", "how recent the answer must be");
const WATCHING: &[Row] = &[
    ("allowWatchBookmarks", "boolean", "send bookmarks now and then while watching"),
    ("watch", "boolean", "stream changes instead of listing"),
];
const LIST: &[Row] = &[
    ("continue", "string", "token of the previous page"),
    ("fieldSelector", "string", "restrict to objects with these field values"),
    ("labelSelector", "string", "restrict to objects with these labels"),
    ("limit", "integer", "most objects of a page"),
    RESOURCE_VERSION,
    ("resourceVersionMatch", "string", "how resourceVersion is meant"),
    ("sendInitialEvents", "boolean", "begin a watch with the objects there are"),
    ("shardSelector", "string", "restrict to a shard of the objects"),
    ("timeoutSeconds", "integer", "longest time the call may take"),
];
const DELETE: &[Row] = &[
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "seconds of graceful termination"),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "delete an object even if it cannot be read",
    ),
    ("orphanDependents", "boolean", "deprecated: use propagationPolicy"),
    ("propagationPolicy", "string", "what happens to dependents: Orphan, Background or Foreground"),
];

/// Query parameters of an operation, by name.
pub fn query(options: Options) -> Vec<Parameter> {
    let groups: &[&[Row]] = match options {
        Options::None => &[],
        Options::Get => &[&[RESOURCE_VERSION]],
        Options::List => &[LIST, WATCHING],
        Options::Create | Options::Update => &[&[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION]],
        Options::Patch => &[&[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE]],
        Options::Delete => &[DELETE],
        Options::DeleteCollection => &[DELETE, LIST],
    };
    let mut parameters: Vec<Parameter> = groups.iter().copied().flatten().map(Parameter::of).collect();
    parameters.push(Parameter::of(&PRETTY));
    parameters.sort();
    parameters
}
