//! The registry: all served resources, built-in and custom, as one immutable snapshot that is replaced when a
//! CustomResourceDefinition changes. A request uses one snapshot.

pub mod build;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use capstan_schema::Schema;
use capstan_schema::custom::Validator;
use serde_json::Value;

use crate::conversion::Strategy;

/// One served version of one resource: `/apis/<group>/<version>/[namespaces/<ns>/]<plural>`.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group; empty for core.
    pub group: String,
    pub version: String,
    /// Kind, for example `Cluster`.
    pub kind: String,
    /// Kind of a list, for example `ClusterList`.
    pub list_kind: String,
    /// Plural name in paths, for example `clusters`.
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// Verbs in discovery.
    pub verbs: Vec<&'static str>,
    /// `status`, `scale`, `token`, `eviction`, …
    pub subresources: Vec<Subresource>,
    /// Schema of this version. Built-in kinds always have one.
    pub schema: Arc<Schema>,
    /// Columns of the Table representation after `Name` for custom resources; empty for built-in kinds, whose tables
    /// are code.
    pub columns: Vec<Column>,
    pub storage_version: String,
    /// Store bucket of the objects, the same for every served version.
    pub bucket: Arc<str>,
    pub origin: Origin,
    /// Validation and conversion of a custom resource.
    pub behaviour: Option<Arc<Behaviour>>,
}

/// Validation and conversion of one version of a custom resource.
#[derive(Debug)]
pub struct Behaviour {
    pub validator: Validator,
    pub conversion: Strategy,
    /// The warning of a deprecated version.
    pub deprecation: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Origin {
    BuiltIn,
    Custom(Arc<CustomResource>),
}

/// A CustomResourceDefinition, shared by its versions.
#[derive(Debug)]
pub struct CustomResource {
    /// Name of the CRD object.
    pub name: String,
    pub uid: String,
    /// The stored spec.
    pub spec: Value,
    /// Whether unknown fields are preserved everywhere (`spec.preserveUnknownFields`).
    pub preserve_unknown: bool,
    /// Changes whenever pruning, defaulting or storage of objects may change.
    pub schema_epoch: u64,
    /// Whether the CRD is being deleted: no new objects.
    pub terminating: bool,
}

#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`.
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    /// Verbs in discovery.
    pub verbs: Vec<&'static str>,
    /// For `scale` of a custom resource: paths into the object.
    pub scale: Option<ScalePaths>,
}

/// JSON paths of a custom resource's scale subresource.
#[derive(Debug, Clone)]
pub struct ScalePaths {
    /// `.spec.replicas`
    pub spec_replicas: String,
    /// `.status.replicas`
    pub status_replicas: String,
    /// `.status.selector`
    pub label_selector: Option<String>,
}

/// An additional printer column.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// 0 is always shown, higher ones only with `-o wide`.
    pub priority: i64,
    pub json_path: String,
}

/// An API group with its versions in order of preference.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Group name; empty for core.
    pub name: String,
    /// Versions, the preferred one first.
    pub versions: Vec<String>,
}

/// All served resources.
#[derive(Debug, Default)]
pub struct Registry {
    /// Groups in discovery order: core first, built-in groups, then custom groups by name.
    pub groups: Vec<Group>,
    /// Resources by (group, version), in discovery order.
    pub resources: BTreeMap<(String, String), Vec<Arc<Resource>>>,
    /// Resources by plural, those of all groups and versions: looked up for every request, without a copy of a name.
    pub by_plural: HashMap<String, Vec<Arc<Resource>>>,
    /// Incremented with every change.
    pub generation: u64,
}

impl Resource {
    /// `group/version`, or `version` in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub fn custom(&self) -> Option<&Arc<CustomResource>> {
        match &self.origin {
            Origin::Custom(custom) => Some(custom),
            Origin::BuiltIn => None,
        }
    }
}

impl Registry {
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_plural.get(plural)?.iter().find(|r| r.group == group && r.version == version)
    }
}

impl Registry {
    /// Finds a resource by group and kind, in the preferred version that has it.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        let group = self.groups.iter().find(|g| g.name == group)?;
        group.versions.iter().find_map(|version| {
            self.resources.get(&(group.name.clone(), version.clone()))?.iter().find(|r| r.kind == kind)
        })
    }

    /// Finds the resource of a bucket, in the storage version if it is served.
    pub fn find_bucket(&self, bucket: &str) -> Option<&Arc<Resource>> {
        let (group, plural) = bucket.split_once('/')?;
        let group = self.groups.iter().find(|g| g.name == group)?;
        let mut served = group.versions.iter().filter_map(|v| self.find(&group.name, v, plural));
        let first = served.next()?;
        if first.version == first.storage_version {
            return Some(first);
        }
        Some(served.find(|r| r.version == r.storage_version).unwrap_or(first))
    }
}

/// `group/version`, or `version` in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.into() } else { format!("{group}/{version}") }
}
