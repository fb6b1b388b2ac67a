//! The initial state of the copy: definitions and objects of the server.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_capi_plane::{ClusterApi, Rules};
use capstan_capi_types::core::{Cluster, ClusterClass};
use capstan_controller::{ApiError, Client, KindName};
use capstan_object::{Key, Scope};
use capstan_rehearsal::{Kinds, Records};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::topologies::{Named, class_of, key_of, referring};
use crate::kinds::{clusters, list};
use crate::plugins::Plugins;

/// Suffix of the API groups of Cluster API and its providers.
const GROUPS: &str = "cluster.x-k8s.io";
/// Type of Secrets that clusters do not need.
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Our own kinds, and those of other providers as the server defines them.
pub async fn kinds(plugins: &Plugins, client: &Client) -> Kinds {
    let mut definitions = capstan_capi_plane::definitions();
    definitions.extend(plugins.definitions());
    let known: BTreeSet<String> = definitions.iter().map(name).collect();
    let mut kind = KindName::namespaced(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    kind.scope = Scope::Cluster;
    // Without permission to list definitions, only our own providers are known.
    let others = list(client, &kind, "").await.unwrap_or_default();
    definitions.extend(others.into_iter().filter(|other| !known.contains(&name(other))).filter_map(foreign));
    let plugins = plugins.clone();
    Kinds { definitions, configure: Box::new(move |config| config.with_kinds(Arc::new(rules(&plugins)))) }
}

fn rules(plugins: &Plugins) -> ClusterApi {
    ClusterApi::new(Rules::default().with(plugins.rules())).converting(plugins.versions())
}

fn name(definition: &Value) -> String {
    definition["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// The definition of another provider's kind, without its conversion webhook.
fn foreign(definition: Value) -> Option<Value> {
    let group = definition["spec"]["group"].as_str()?;
    if !group.ends_with(GROUPS) {
        return None;
    }
    let mut spec = definition["spec"].clone();
    spec.as_object_mut()?.remove("conversion");
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name(&definition), "labels": definition["metadata"]["labels"]},
        "spec": spec,
    }))
}

/// The namespaces of a manifest.
pub fn namespaces(objects: &[Value], default: &str) -> BTreeSet<String> {
    let named = |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or(default).to_owned();
    objects.iter().map(named).collect()
}

/// All objects of these namespaces that controllers read.
pub async fn records(client: &Client, kinds: &Kinds, namespaces: &BTreeSet<String>) -> Result<Records> {
    let mut names = kinds.names();
    names.push(KindName::namespaced("", "v1", "Secret", "secrets"));
    names.push(KindName::namespaced("", "v1", "ConfigMap", "configmaps"));
    let mut all = Vec::new();
    for namespace in namespaces {
        let lists = names.iter().map(|kind| recorded(client, kind, namespace));
        for (kind, objects) in names.iter().zip(try_join_all(lists).await?) {
            all.extend(objects.into_iter().map(|object| (kind.clone(), object)));
        }
    }
    Ok(Records(all))
}

/// The namespaces of clusters whose class a change names, directly or by a template.
pub async fn users(client: &Client, namespace: &str, named: &[Named]) -> Result<BTreeSet<String>> {
    let classes = of_kind(named, |kind| kind == "ClusterClass");
    let templates = of_kind(named, |kind| kind.ends_with("Template"));
    let mut changed: BTreeSet<Key> = classes.cloned().collect();
    let places: BTreeSet<&str> = templates.map(|key| key.namespace.as_str()).collect();
    for place in places {
        let there = recorded(client, &KindName::of::<ClusterClass>(), place).await?;
        changed.extend(referring(&there, named));
    }
    if changed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let all = clusters(client, namespace).await.context("cannot list the clusters of the class")?;
    Ok(all
        .iter()
        .filter(|it| class_of(it).is_some_and(|class| changed.contains(&class)))
        .map(|it| key_of(it).namespace)
        .collect())
}

fn of_kind(named: &[Named], is: impl Fn(&str) -> bool) -> impl Iterator<Item = &Key> {
    named.iter().filter(move |(kind, _)| is(kind)).map(|(_, key)| key)
}

/// Classes in other namespaces that clusters use, with their templates.
pub async fn classes(
    client: &Client,
    kinds: &Kinds,
    namespaces: &BTreeSet<String>,
    records: &Records,
    manifest: &[Value],
) -> Result<Vec<(KindName, Value)>> {
    let recorded_clusters = records.0.iter().map(|(_, object)| object);
    let clusters = recorded_clusters.chain(manifest).filter(|object| object["kind"] == "Cluster");
    let places: BTreeSet<String> = clusters
        .filter_map(class_of)
        .map(|class| class.namespace)
        .filter(|place| !place.is_empty() && !namespaces.contains(place))
        .collect();
    let is_shared = |kind: &&KindName| kind.kind == "ClusterClass" || kind.kind.ends_with("Template");
    let names = kinds.names();
    let mut found = Vec::new();
    for place in places {
        for kind in names.iter().filter(is_shared) {
            let objects = recorded(client, kind, &place).await?;
            found.extend(objects.into_iter().map(|object| (kind.clone(), object)));
        }
    }
    Ok(found)
}

/// Drops the `Paused` conditions of infrastructure objects.
pub fn drop_paused_conditions(records: &mut Records) {
    for (_, object) in records.0.iter_mut().filter(|(kind, _)| kind.group.starts_with("infrastructure.")) {
        if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
            conditions.retain(|condition| condition["type"] != "Paused");
        }
    }
}

async fn recorded(client: &Client, kind: &KindName, namespace: &str) -> Result<Vec<Value>> {
    let found = match list(client, kind, if kind.scope == Scope::Cluster { "" } else { namespace }).await {
        // A provider that is not installed. The Cluster kind must exist.
        Err(error) if error.is_not_found() && *kind != KindName::of::<Cluster>() => Ok(Vec::new()),
        found => found,
    };
    let found: Result<Vec<Value>, ApiError> = found;
    let mut found = found.with_context(|| format!("cannot list {kind}, which the plan needs"))?;
    found.retain(|object| object["type"] != ACCOUNT_TOKEN);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_other_providers_are_copied_without_webhooks() {
        let definition = |group: &str| {
            json!({"metadata": {"name": format!("things.{group}"), "labels": {"a": "b"}, "uid": "u"},
                "spec": {"group": group, "conversion": {"strategy": "Webhook"}, "scope": "Namespaced"}})
        };
        assert_eq!(foreign(definition("example.org")), None);
        let taken = foreign(definition("infrastructure.cluster.x-k8s.io")).expect("taken");
        assert_eq!(taken["spec"].get("conversion"), None);
        assert_eq!(taken["metadata"].get("uid"), None);
        assert_eq!(taken["metadata"]["labels"]["a"], "b");
    }
}
