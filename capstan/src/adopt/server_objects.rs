//! The objects of an imported cluster on the server.

use anyhow::{Context, Result};
use capstan_controller::KindName;
use capstan_object::Key;
use serde_json::Value;

use super::graph::Objects;
use super::record::is_marked;
use super::refs::{Id, owners, text};
use super::source::manifest_kinds;
use crate::connection::Management;
use crate::kinds::list;

/// Kinds that may belong to a cluster.
async fn kinds(management: &Management) -> Result<Vec<KindName>> {
    let mut kinds: Vec<KindName> =
        management.kinds().await?.iter().map(|served| served.kind.clone()).collect();
    kinds.push(KindName::namespaced("", "v1", "Secret", "secrets"));
    kinds.push(KindName::namespaced("", "v1", "ConfigMap", "configmaps"));
    Ok(kinds)
}

/// The objects that were imported for a cluster, and those that it came to own since. Owners come first. Objects that
/// it only refers to are somebody else's.
pub async fn members_of(management: &Management, cluster: &Key) -> Result<Vec<Value>> {
    Ok(members(management, cluster).await?.into_iter().map(|(_, object)| object).collect())
}

/// Like [`members_of`], with their kinds.
pub async fn members(management: &Management, cluster: &Key) -> Result<Vec<(KindName, Value)>> {
    let mut kinds = kinds(management).await?;
    let manifests = manifest_kinds(management).await?;
    kinds.extend(manifests.iter().cloned());
    let mut all = Vec::new();
    for kind in &kinds {
        // Credentials and manifests may be in another namespace.
        let anywhere = kind.kind == "Secret" || manifests.contains(kind);
        let namespace = if anywhere { "" } else { cluster.namespace.as_str() };
        let found = list(&management.client, kind, namespace).await;
        all.extend(found.with_context(|| format!("cannot list {kind}"))?);
    }
    let marked = |object: &Value| is_marked(object, cluster);
    let also: Vec<Id> = all.iter().filter(|object| marked(object)).map(Id::of).collect();
    let graph = Objects::new(all).members(cluster, &also)?;
    let mut owned: Vec<String> = Vec::new();
    let mut members = Vec::new();
    for object in graph {
        let has_owner = owners(&object).any(|owner| owned.iter().any(|uid| uid == text(owner, "uid")));
        if !marked(&object) && !has_owner {
            continue;
        }
        owned.push(text(&object, "metadata.uid").to_owned());
        let id = Id::of(&object);
        if let Some(kind) = kinds.iter().find(|kind| kind.kind == id.kind && kind.group == id.group) {
            members.push((kind.clone(), object));
        }
    }
    Ok(members)
}
