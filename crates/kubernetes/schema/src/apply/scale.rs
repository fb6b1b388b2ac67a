//! Field ownership through the scale subresource: a `Scale` shows who owns the replicas of its parent,
//! and writing it changes the parent's entries.
//!
//! ```text
//! parent's managedFields ── to_scale ──► Scale ── Ownership::update / apply ──► Scale
//!                                                                                 │
//! parent's managedFields ◄──────────────────────── to_parent ◄────────────────────┘
//! ```
//!
//! The `Scale` is written with an [`Ownership`](super::Ownership) of `autoscaling/v1`, `Scale`,
//! subresource `scale`, and nothing reset.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fieldpath::{Path, PathElement, Set};
use super::managed::{Managed, Owned, entries};

/// Paths of replicas by version of the parent; `None` for a version without scale.
pub type ReplicasPaths = BTreeMap<String, Option<Path>>;

const SCALE_VERSION: &str = "autoscaling/v1";

fn scale_path() -> Path {
    ["spec", "replicas"].into_iter().map(PathElement::field).collect()
}

fn only(path: &[PathElement]) -> Set {
    let mut set = Set::new();
    set.insert(path);
    set
}

/// The path of a JSON path such as `.spec.replicas`.
pub fn replicas_path(json_path: &str) -> Path {
    json_path.trim_start_matches('.').split('.').map(PathElement::field).collect()
}

/// The `managedFields` (null for none) of the `Scale` of an object.
///
/// # Errors
/// Upstream's text about the invalid entries of the parent.
pub fn to_scale(parent: &Value, paths: &ReplicasPaths) -> Result<Value, String> {
    let managed = Managed::decode(&entries(parent).unwrap_or_default())?;
    let mut out = Managed { times: managed.times, ..Managed::default() };
    for (id, owned) in managed.fields {
        let Some(Some(path)) = paths.get(&owned.api_version) else { continue };
        if owned.set.has(path) {
            let set = only(&scale_path());
            out.fields
                .insert(id, Owned { set, api_version: SCALE_VERSION.to_owned(), applied: owned.applied });
        }
    }
    Ok(encoded(out))
}

/// The `managedFields` (null for none) of the parent after its `Scale` was written. `api_version` is the version of
/// the parent in the request.
///
/// # Errors
/// Upstream's text about the invalid entries of either object.
pub fn to_parent(
    parent: &Value,
    scale: &Value,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Value, String> {
    let managed = Managed::decode(&entries(parent).unwrap_or_default())?;
    let mut scaled = Managed::decode(&entries(scale).unwrap_or_default())?.fields;
    let mut out = Managed { times: managed.times, ..Managed::default() };
    for (id, mut owned) in managed.fields {
        let Some(path) = paths.get(&owned.api_version) else { continue };
        let Some(path) = path.as_ref().filter(|path| owned.set.has(path)) else {
            out.fields.insert(id, owned);
            continue;
        };
        if scaled.remove(&id).is_none() {
            // Another manager took the replicas. Updates always look like that, because their identity contains the
            // version, and are added back below.
            owned.set = owned.set.difference(&only(path));
        }
        if !owned.set.is_empty() {
            out.fields.insert(id, owned);
        }
    }
    let path = paths.get(api_version).cloned().flatten().unwrap_or_default();
    for (id, owned) in scaled {
        if owned.set.has(&scale_path()) {
            let owned =
                Owned { set: only(&path), api_version: api_version.to_owned(), applied: owned.applied };
            out.fields.insert(id, owned);
        }
    }
    Ok(encoded(out))
}

fn encoded(managed: Managed) -> Value {
    let mut object = json!({});
    managed.encode(&mut object);
    object.pointer("/metadata/managedFields").cloned().unwrap_or_default()
}
