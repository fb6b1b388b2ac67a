//! `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.

use serde_json::{Value, json};

use super::listed_subresources;
use crate::registry::{Group, Registry, Resource, Subresource};

/// The list of `groups`, in their order.
pub fn list<'a>(registry: &Registry, groups: impl Iterator<Item = &'a Group>) -> Value {
    let items: Vec<Value> = groups.map(|group| item(registry, group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn item(registry: &Registry, group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let key = (group.name.clone(), version.clone());
            let mut served: Vec<&Resource> =
                registry.resources.get(&key).into_iter().flatten().map(AsRef::as_ref).collect();
            served.sort_by(|a, b| a.plural.cmp(&b.plural));
            let resources: Vec<Value> = served.into_iter().map(resource).collect();
            json!({ "version": version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": group.name }) };
    json!({ "metadata": metadata, "versions": versions })
}

fn resource(resource: &Resource) -> Value {
    let own = match resource.custom() {
        Some(_) => response_kind(&resource.group, &resource.version, &resource.kind),
        None => response_kind("", "", &resource.kind),
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    let subresources: Vec<Value> =
        listed_subresources(resource).into_iter().map(|sub| subresource(resource, sub)).collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

/// Built-in kinds leave out a group and version that are their own.
fn subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let own = (&subresource.group, &subresource.version) == (&resource.group, &resource.version);
    let kind = if own && resource.custom().is_none() {
        response_kind("", "", &subresource.kind)
    } else {
        response_kind(&subresource.group, &subresource.version, &subresource.kind)
    };
    json!({ "subresource": subresource.name, "responseKind": kind, "verbs": subresource.verbs })
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}
