//! CustomResourceDefinitions, generated from the Rust types.
//!
//! ```text
//! type ── derive ──▶ JSON schema ── structural ──▶ structural schema ─┐
//! names, columns, subresources of each kind (kinds) ──────────────────┴──▶ definitions()
//! ```
//!
//! Providers define their kinds in the same way: see [`Definition`].

mod kinds;
mod structural;

use capstan_object::{Kind, Object, Scope};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

pub use structural::structural;

/// A kind's definition without its schemas.
pub struct Definition {
    pub kind: Kind,
    pub short_names: &'static [&'static str],
    /// Labels of the definition, including those of the contract.
    pub labels: &'static [(&'static str, &'static str)],
    /// Oldest first; the last one is the storage version.
    pub versions: Vec<Version>,
}

pub struct Version {
    name: &'static str,
    deprecated: bool,
    schema: Value,
    columns: Vec<Column>,
    status: bool,
    scale: Option<Scale>,
}

/// The scale subresource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Without a label selector.
    Number,
    /// With a label selector.
    NumberAndSelector,
}

/// A column of `kubectl get`.
pub struct Column {
    name: &'static str,
    kind: &'static str,
    path: &'static str,
    /// Shown with `-o wide` only.
    wide: bool,
}

pub fn text(name: &'static str, path: &'static str) -> Column {
    Column { name, kind: "string", path, wide: false }
}

pub fn integer(name: &'static str, path: &'static str) -> Column {
    Column { name, kind: "integer", path, wide: false }
}

pub fn boolean(name: &'static str, path: &'static str) -> Column {
    Column { name, kind: "boolean", path, wide: false }
}

pub fn age() -> Column {
    Column { name: "Age", kind: "date", path: ".metadata.creationTimestamp", wide: false }
}

pub fn paused() -> Column {
    text("Paused", r#".status.conditions[?(@.type=="Paused")].status"#).wide()
}

pub const CLUSTER_LABEL: &str = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']";

/// On every definition: clusterctl counts it as installed.
pub const CLUSTERCTL: (&str, &str) = ("clusterctl.cluster.x-k8s.io", "");

impl Column {
    /// Shown with `-o wide` only.
    #[must_use]
    pub fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    /// Upstream's priority of `-o wide` columns.
    const WIDE: i32 = 10;

    fn to_value(&self) -> Value {
        let mut column = json!({ "name": self.name, "type": self.kind, "jsonPath": self.path });
        if self.wide {
            column["priority"] = Self::WIDE.into();
        }
        column
    }
}

impl Version {
    /// A version with the schema of a type.
    pub fn of<T: Object + JsonSchema>(columns: Vec<Column>) -> Self {
        Self {
            name: T::KIND.version,
            deprecated: false,
            schema: structural::<T>(),
            columns,
            status: false,
            scale: None,
        }
    }

    /// With a status subresource.
    #[must_use]
    pub fn with_status(self) -> Self {
        Self { status: true, ..self }
    }

    /// With a status from the first moment on: a condition which says that no controller has seen the object yet. Without
    /// it, tools that wait by the rules of kstatus take a new object for a finished one.
    #[must_use]
    pub fn pending(mut self, condition: &str, status: &str) -> Self {
        let schema = &mut self.schema["properties"]["status"];
        let mut default = json!({"conditions": [{
            "type": condition, "status": status, "reason": "Pending", "message": "Waiting for the controller",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]});
        // Contracts require flags such as `ready`.
        for flag in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            default[flag] = false.into();
        }
        schema["default"] = default;
        self
    }

    /// With a scale subresource.
    #[must_use]
    pub fn with_scale(self) -> Self {
        Self { scale: Some(Scale::NumberAndSelector), ..self }
    }

    /// With a scale subresource without selector.
    #[must_use]
    pub fn with_scale_by_number(self) -> Self {
        Self { scale: Some(Scale::Number), ..self }
    }

    /// Deprecated: clients get a warning.
    #[must_use]
    pub fn deprecated(self) -> Self {
        Self { deprecated: true, ..self }
    }

    fn to_value(&self, stored: bool) -> Value {
        let mut subresources = Map::new();
        if self.status {
            subresources.insert("status".to_owned(), json!({}));
        }
        if let Some(by) = self.scale {
            let mut scale =
                json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
            if by == Scale::NumberAndSelector {
                scale["labelSelectorPath"] = ".status.selector".into();
            }
            subresources.insert("scale".to_owned(), scale);
        }
        let mut version = json!({
            "name": self.name,
            "served": true,
            "storage": stored,
            "schema": { "openAPIV3Schema": self.schema },
            "subresources": subresources,
            "additionalPrinterColumns": self.columns.iter().map(Column::to_value).collect::<Vec<_>>(),
        });
        if self.deprecated {
            version["deprecated"] = true.into();
        }
        version
    }
}

impl Definition {
    pub fn to_value(&self) -> Value {
        let Kind { group, kind, plural, scope, .. } = self.kind;
        let mut names = json!({
            "kind": kind,
            "listKind": format!("{kind}List"),
            "plural": plural,
            "singular": kind.to_lowercase(),
            "categories": ["cluster-api"],
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = self.short_names.into();
        }
        let last = self.versions.len().saturating_sub(1);
        let versions: Vec<Value> =
            self.versions.iter().enumerate().map(|(at, version)| version.to_value(at == last)).collect();
        let labels: Map<String, Value> =
            self.labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}"), "labels": labels },
            "spec": {
                "group": group,
                "names": names,
                "scope": match scope {
                    Scope::Namespaced => "Namespaced",
                    Scope::Cluster => "Cluster",
                },
                "versions": versions,
            },
        })
    }
}

/// The CustomResourceDefinitions of every kind in this crate, sorted by name.
pub fn definitions() -> Vec<Value> {
    let mut definitions: Vec<Value> = kinds::all().iter().map(Definition::to_value).collect();
    definitions.sort_by(|a, b| a["metadata"]["name"].as_str().cmp(&b["metadata"]["name"].as_str()));
    definitions
}
