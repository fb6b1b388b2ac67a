//! `tests/topology-diff/scenarios`: which class, which cluster of it, and what is changed afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::source::{Source, label, merge};
use crate::cargo;
use crate::peers::Cache;

/// A class with the clusters that are made from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Classes with their templates.
    classes: Vec<Source>,
    /// Variables of published templates.
    #[serde(default)]
    values: BTreeMap<String, String>,
    scenarios: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    /// A published Cluster.
    #[serde(default)]
    published: Option<Source>,
    /// A Cluster named `one`, or what is merged into the published one.
    #[serde(default)]
    cluster: Value,
    /// The cluster cannot be made.
    #[serde(default)]
    without_control_plane: bool,
    /// Objects that are created with the classes.
    #[serde(default)]
    also: Vec<Value>,
    #[serde(default)]
    steps: Vec<Step>,
}

/// Changes that are made together. The result is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub name: String,
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
}

/// One request. Objects are named by kind and name, generated ones by their role: `@one/control-plane`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Action {
    Create(Value),
    /// A JSON merge patch.
    Merge {
        object: String,
        with: Value,
    },
    /// A JSON patch.
    Patch {
        object: String,
        with: Value,
    },
    /// A JSON merge patch of the status.
    Status {
        object: String,
        with: Value,
    },
    /// The control plane of a cluster reports this version for this number of machines.
    ControlPlaneReady {
        cluster: String,
        version: String,
        replicas: i64,
    },
    Delete(String),
}

/// A cluster in a namespace of its own.
#[derive(Debug)]
pub struct Scenario {
    /// File and name.
    pub name: String,
    pub namespace: String,
    pub steps: Vec<Step>,
}

fn folder() -> PathBuf {
    cargo::root().join("tests/topology-diff/scenarios")
}

/// The scenarios whose name contains a text.
pub fn load(cache: &Cache, only: Option<&str>) -> Result<Vec<Scenario>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder())?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        let file: File = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        for entry in &file.scenarios {
            let name = format!("{stem}/{}", entry.name.replace(' ', "-"));
            if only.is_none_or(|only| name.contains(only)) {
                let scenario = scenario(cache, &file, entry, name).with_context(|| entry.name.clone())?;
                all.push(scenario);
            }
        }
    }
    ensure!(!all.is_empty(), "no scenario has this name");
    Ok(all)
}

fn scenario(cache: &Cache, file: &File, entry: &Entry, name: String) -> Result<Scenario> {
    let namespace = name.replace('/', "-");
    let mut classes = Vec::new();
    for source in &file.classes {
        for object in source.read(cache, &file.values, None)? {
            // Classes of one file may share templates.
            if !classes.iter().any(|known| label(known) == label(&object)) {
                classes.push(object);
            }
        }
    }
    classes.extend(entry.also.iter().cloned());
    let mut cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "one"},
    });
    if let Some(source) = &entry.published {
        cluster = source.read(cache, &file.values, Some("Cluster"))?.remove(0);
        merge(&mut cluster, &json!({"metadata": {"namespace": null}}));
        merge(&mut cluster, &json!({"spec": {"topology": {"classRef": {"namespace": null}}}}));
    }
    if !entry.cluster.is_null() {
        merge(&mut cluster, &entry.cluster);
    }
    let name_of_cluster = cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    let create = |objects: Vec<Value>| objects.into_iter().map(Action::Create).collect();
    let mut steps = vec![
        Step { name: "create classes".to_owned(), actions: create(classes) },
        Step { name: "create the cluster".to_owned(), actions: create(vec![cluster]) },
    ];
    if !entry.without_control_plane {
        // The suite writes its status, which its controller must not change.
        let object = format!("@{name_of_cluster}/control-plane");
        let actions = vec![Action::Merge { object, with: paused }];
        steps.push(Step { name: "pause the control plane".to_owned(), actions });
    }
    steps.extend(entry.steps.iter().cloned());
    Ok(Scenario { name, namespace, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_readable_and_names_are_unique() {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let file: File =
                serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            names.extend(file.scenarios.iter().map(|it| format!("{path:?}/{}", it.name)));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
