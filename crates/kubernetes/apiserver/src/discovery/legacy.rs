//! APIVersions, APIGroupList, APIGroup and APIResourceList.

use std::sync::Arc;

use base64::Engine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{group_priority, listed_subresources};
use crate::registry::{Group, Resource, api_version};

/// `APIVersions`, without `apiVersion`, as since release 1.1.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `APIGroupList`. Groups of equal priority are ordered by the name of their first APIService, which starts with the
/// version: `v1.zoo` comes before `v1alpha1.ant`.
pub fn groups(groups: &[Group]) -> Value {
    let mut named: Vec<(String, &Group)> = groups
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(|group| {
            let names = group.versions.iter().map(|version| format!("{version}.{}", group.name));
            (names.min().unwrap_or_default(), group)
        })
        .collect();
    named.sort_by(|(a_name, a), (b_name, b)| {
        group_priority(&b.name).cmp(&group_priority(&a.name)).then_with(|| a_name.cmp(b_name))
    });
    let entries: Vec<Value> = named.iter().map(|(_, group)| entry(group).into()).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": entries })
}

/// `APIGroup`.
pub fn group(group: &Group) -> Value {
    let mut document = entry(group);
    document.insert("kind".into(), "APIGroup".into());
    document.insert("apiVersion".into(), "v1".into());
    document.into()
}

fn entry(group: &Group) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({ "groupVersion": api_version(&group.name, version), "version": version }))
        .collect();
    let mut entry = Map::new();
    entry.insert("name".into(), group.name.as_str().into());
    if let Some(preferred) = versions.first() {
        entry.insert("preferredVersion".into(), preferred.clone());
    }
    entry.insert("versions".into(), versions.into());
    entry
}

/// `APIResourceList`, without `apiVersion` in the core group.
pub fn resources(group: &str, group_version: &str, resources: &[Arc<Resource>]) -> Value {
    let entries: Vec<Value> = resources.iter().flat_map(|resource| resource_entries(resource)).collect();
    let mut list = json!({
        "kind": "APIResourceList", "groupVersion": group_version, "resources": entries,
    });
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    list
}

fn resource_entries(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        main["categories"] = resource.categories.clone().into();
    }
    // Resources without watch are not stored.
    if resource.verbs.contains(&"watch") {
        main["storageVersionHash"] = storage_version_hash(resource).into();
    }
    let subresources = listed_subresources(resource).into_iter().map(|subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        });
        if (&subresource.group, &subresource.version) != (&resource.group, &resource.version) {
            if !subresource.group.is_empty() {
                entry["group"] = subresource.group.as_str().into();
            }
            entry["version"] = subresource.version.as_str().into();
        }
        entry
    });
    std::iter::once(main).chain(subresources).collect()
}

/// Identifies the storage encoding, for migration tools. The hashes of built-in kinds are fixed: some are stored in
/// another version or group than they are served in.
fn storage_version_hash(resource: &Resource) -> String {
    if resource.custom().is_none()
        && let Some(kind) = capstan_builtin::kind(&resource.group, &resource.version, &resource.kind)
    {
        return kind.storage_version_hash.to_owned();
    }
    let name = format!("{}/{}/{}", resource.group, resource.storage_version, resource.kind);
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(name)[..8])
}
