//! ClusterClasses and Clusters as upstream modules publish them, and the definitions of their infrastructure.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bed::install;
use crate::bed::managers::{CAPD, Manager, OPENSTACK};
use crate::bed::template::substituted;
use crate::peers::catalog::{CAPO, CAPO_MODULE, CLUSTER_API, CLUSTER_API_TEST_MODULE};
use crate::peers::{Cache, module_dir};

/// Values of the variables in published templates, unless a file of scenarios has others.
const VALUES: [(&str, &str); 8] = [
    ("CLUSTER_NAME", "one"),
    ("NAMESPACE", "default"),
    ("KUBERNETES_VERSION", "v1.34.0"),
    ("CONTROL_PLANE_MACHINE_COUNT", "1"),
    ("WORKER_MACHINE_COUNT", "2"),
    ("DOCKER_SERVICE_CIDRS", "10.128.0.0/12"),
    ("DOCKER_POD_CIDRS", "192.168.0.0/16"),
    ("DOCKER_SERVICE_DOMAIN", "cluster.local"),
];

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Module {
    #[serde(rename = "cluster-api/test")]
    ClusterApiTest,
    #[serde(rename = "cluster-api-provider-openstack")]
    OpenStack,
}

/// Manifests of a module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    module: Module,
    #[serde(default)]
    file: Option<String>,
    /// A folder of the module for `kubectl kustomize`.
    #[serde(default)]
    kustomize: Option<String>,
    /// Replaced in the text, so that one class can be there under two names.
    #[serde(default)]
    replace: BTreeMap<String, String>,
    /// Merged into objects before they are created.
    #[serde(default)]
    merge: Vec<Merge>,
}

/// A change of the object with this kind and name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    object: String,
    with: Value,
}

impl Module {
    fn path(self) -> (&'static str, String) {
        match self {
            Self::ClusterApiTest => (CLUSTER_API_TEST_MODULE, format!("v{CLUSTER_API}")),
            Self::OpenStack => (CAPO_MODULE, format!("v{CAPO}")),
        }
    }
}

impl Source {
    /// The objects of these kinds, or all but ClusterResourceSets and their ConfigMaps if no kind is given.
    pub fn read(
        &self,
        cache: &Cache,
        values: &BTreeMap<String, String>,
        only: Option<&str>,
    ) -> Result<Vec<Value>> {
        let (module, version) = self.module.path();
        let (text, place) = match (&self.file, &self.kustomize) {
            (Some(file), None) => {
                let path = module_dir(module, &version)?.join(file);
                (std::fs::read_to_string(&path).with_context(|| path.display().to_string())?, file)
            }
            (None, Some(folder)) => {
                let name = format!("topology-{}", folder.replace('/', "-"));
                (install::rendered(cache, &name, module, &version, &[folder])?, folder)
            }
            _ => anyhow::bail!("a source has either a file or a folder"),
        };
        let default = |name: &str| VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let value = |name: &str| values.get(name).cloned().or_else(|| default(name).map(str::to_owned));
        let mut text = substituted(&text, value).with_context(|| place.clone())?;
        for (from, to) in &self.replace {
            text = text.replace(from, to);
        }
        let mut objects = install::documents(&text).with_context(|| place.clone())?;
        objects.retain(|object| match only {
            Some(kind) => object["kind"] == kind,
            None => object["kind"] != "ConfigMap" && object["kind"] != "ClusterResourceSet",
        });
        ensure!(!objects.is_empty(), "{place} has no objects");
        for change in &self.merge {
            let mut found = objects.iter_mut().filter(|object| label(object) == change.object);
            let object = found.next().with_context(|| format!("{place} has no {}", change.object))?;
            merge(object, &change.with);
        }
        Ok(objects)
    }
}

/// Kind and name.
pub fn label(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// A JSON merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => {
                target.as_object_mut().map(|object| object.remove(name));
            }
            value => merge(&mut target[name], value),
        }
    }
}

/// Definitions of the infrastructure kinds. No provider runs, so there is nobody to convert between versions; the classes
/// use the stored one.
pub fn definitions(cache: &Cache) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for manager in [CAPD, OPENSTACK] {
        all.extend(stored_versions_only(&manager, cache)?);
    }
    Ok(all)
}

fn stored_versions_only(manager: &Manager, cache: &Cache) -> Result<Vec<Value>> {
    let mut definitions = install::documents(&manager.render(cache)?)?;
    definitions.retain(|object| object["kind"] == "CustomResourceDefinition");
    for definition in &mut definitions {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
        if let Some(versions) = definition["spec"]["versions"].as_array_mut() {
            versions.retain(|version| version["storage"] == true);
        }
    }
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_what_is_null() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut object, &json!({"a": {"b": null, "e": {"f": null, "g": 1}}, "d": [2]}));
        assert_eq!(object, json!({"a": {"c": 2, "e": {"g": 1}}, "d": [2]}));
    }
}
