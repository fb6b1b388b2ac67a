//! What is served: built-in kinds and custom resources as one immutable picture, swapped whole when a
//! CustomResourceDefinition changes. Requests take one snapshot and see one truth.

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
    /// API group, empty for core.
    pub group: String,
    /// Version of this representation.
    pub version: String,
    /// Kind, `Cluster`.
    pub kind: String,
    /// Kind of a list, `ClusterList`.
    pub list_kind: String,
    /// Name in paths, `clusters`.
    pub plural: String,
    /// `cluster`.
    pub singular: String,
    /// `cl`.
    pub short_names: Vec<String>,
    /// `cluster-api`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of the main resource as discovery lists them.
    pub verbs: Vec<&'static str>,
    /// `status`, `scale`, `token`, `eviction`, …
    pub subresources: Vec<Subresource>,
    /// Schema of this version. Built-in kinds always have one.
    pub schema: Arc<Schema>,
    /// Columns of the Table representation after `Name` (which is implied) for custom resources; empty
    /// for built-in kinds, whose tables are code.
    pub columns: Vec<Column>,
    /// Version objects are stored in.
    pub storage_version: String,
    /// Store bucket that holds the objects, the same for every served version.
    pub bucket: Arc<str>,
    /// Where the resource comes from.
    pub origin: Origin,
    /// What checks and converts objects of a custom resource.
    pub behaviour: Option<Arc<Behaviour>>,
}

/// What checks and converts objects of one version of a custom resource.
#[derive(Debug)]
pub struct Behaviour {
    /// Says whether an object may be stored.
    pub validator: Validator,
    /// How objects get from one version to another.
    pub conversion: Strategy,
    /// What every request to a deprecated version is told.
    pub deprecation: Option<String>,
}

/// Where a resource comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Compiled in.
    BuiltIn,
    /// From a CustomResourceDefinition.
    Custom(Arc<CustomResource>),
}

/// What the server keeps of one CustomResourceDefinition, shared by its versions.
#[derive(Debug)]
pub struct CustomResource {
    /// Name of the CRD object.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its whole spec, as stored.
    pub spec: Value,
    /// Whether unknown fields survive everywhere (`spec.preserveUnknownFields`).
    pub preserve_unknown: bool,
    /// Differs whenever pruning, defaulting or storage of objects may differ.
    pub schema_epoch: u64,
    /// The CRD is being deleted: no new objects.
    pub terminating: bool,
}

/// A subresource of a [`Resource`].
#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`.
    pub name: String,
    /// Group, version and kind of its body.
    pub group: String,
    /// Version of its body.
    pub version: String,
    /// Kind of its body.
    pub kind: String,
    /// Verbs as discovery lists them.
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
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    /// OpenAPI format.
    pub format: String,
    /// Help text.
    pub description: String,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i64,
    /// Where the value is.
    pub json_path: String,
}

/// One API group with its versions in order of preference.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Group name, empty for core.
    pub name: String,
    /// Versions, the preferred one first.
    pub versions: Vec<String>,
}

/// Everything served at one moment.
#[derive(Debug, Default)]
pub struct Registry {
    /// Groups in discovery order: core first, built-in groups, then custom groups by name.
    pub groups: Vec<Group>,
    /// Resources by (group, version), in discovery order.
    pub resources: BTreeMap<(String, String), Vec<Arc<Resource>>>,
    /// Resources by (group, version, plural).
    pub by_path: HashMap<(String, String, String), Arc<Resource>>,
    /// Grows with every change.
    pub generation: u64,
}

impl Resource {
    /// `group/version`, or `version` in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The custom resource behind it, if it is one.
    pub fn custom(&self) -> Option<&Arc<CustomResource>> {
        match &self.origin {
            Origin::Custom(custom) => Some(custom),
            Origin::BuiltIn => None,
        }
    }
}

impl Registry {
    /// Finds a resource by its path parts.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
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

    /// Finds the resource whose objects are in a bucket, in the version they are stored in if served.
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
