//! The resources of a server, from discovery, and the paths of objects by kind.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::api::Api;
use crate::bed::wait;

/// One resource of one group version. Subresources are left out.
#[derive(Clone, Debug)]
pub struct Resource {
    pub api_version: String,
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
}

impl Resource {
    /// Path of the collection, in a namespace or across all.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
            }
            _ => format!("{root}/{}/{}", self.api_version, self.plural),
        }
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }
}

#[derive(Clone, Debug)]
pub struct Discovery {
    pub resources: Vec<Resource>,
}

impl Discovery {
    /// Reads every version of every group.
    pub async fn read(api: &Api) -> Result<Self> {
        let mut versions = vec!["v1".to_owned()];
        let groups = api.get("/apis").await?.success()?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            for version in group["versions"].as_array().into_iter().flatten() {
                versions.push(version["groupVersion"].as_str().context("a version without name")?.to_owned());
            }
        }
        let mut resources = Vec::new();
        for api_version in versions {
            let root = if api_version.contains('/') { "/apis" } else { "/api" };
            let list = api.get(&format!("{root}/{api_version}")).await?.success()?;
            let entries = list["resources"].as_array().into_iter().flatten();
            resources.extend(entries.filter_map(|entry| resource(&api_version, entry)));
        }
        Ok(Self { resources })
    }

    pub fn find(&self, api_version: &str, kind: &str) -> Result<&Resource> {
        self.resources
            .iter()
            .find(|resource| resource.api_version == api_version && resource.kind == kind)
            .with_context(|| format!("the server does not serve {kind} in {api_version}"))
    }

    /// Creates an object, in its own namespace or the given one.
    pub async fn create(&self, api: &Api, object: &Value, namespace: Option<&str>) -> Result<Value> {
        let (api_version, kind) =
            (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let namespace = object["metadata"]["namespace"].as_str().or(namespace);
        let path = self.find(api_version, kind)?.collection(namespace);
        api.post(&path, object)
            .await?
            .success()
            .with_context(|| format!("create {kind} {}", object["metadata"]["name"]))
    }

    /// Every object in a namespace except Events, with its kind. Reads each resource in one version only.
    pub async fn objects_in(&self, api: &Api, namespace: &str) -> Result<Vec<(String, Value)>> {
        let (mut objects, mut seen) = (Vec::new(), BTreeSet::new());
        for resource in self.resources.iter().filter(|resource| resource.kind != "Event") {
            let group = resource.api_version.split_once('/').map_or("", |(group, _)| group);
            if !resource.namespaced || !resource.can("list") || !seen.insert((group, &resource.plural)) {
                continue;
            }
            let path = resource.collection(Some(namespace));
            // kube-apiserver responds with 429 for a moment after a definition has changed.
            let mut list = wait::until(&path, Duration::from_secs(30), || async {
                let reply = api.get(&path).await?;
                if reply.status == 429 { Ok(None) } else { reply.success().map(Some) }
            })
            .await?;
            let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            objects.extend(items.into_iter().map(|item| (resource.kind.clone(), item)));
        }
        Ok(objects)
    }

    /// Kind and name of the objects in a namespace, except those that every namespace has and those that `expected`
    /// accepts.
    pub async fn left_in(
        &self,
        api: &Api,
        namespace: &str,
        expected: impl Fn(&str, &str) -> bool,
    ) -> Result<Vec<String>> {
        let everywhere = |kind: &str, name: &str| match kind {
            "ServiceAccount" => name == "default",
            "ConfigMap" => name == "kube-root-ca.crt",
            _ => false,
        };
        let objects = self.objects_in(api, namespace).await?;
        let names = objects
            .iter()
            .map(|(kind, object)| (kind.as_str(), object["metadata"]["name"].as_str().unwrap_or_default()));
        let left = names.filter(|(kind, name)| !everywhere(kind, name) && !expected(kind, name));
        Ok(left.map(|(kind, name)| format!("{kind} {name}")).collect())
    }
}

fn resource(api_version: &str, entry: &Value) -> Option<Resource> {
    let plural = entry["name"].as_str()?;
    if plural.contains('/') {
        return None;
    }
    Some(Resource {
        api_version: api_version.to_owned(),
        plural: plural.to_owned(),
        kind: entry["kind"].as_str()?.to_owned(),
        namespaced: entry["namespaced"].as_bool()?,
        verbs: entry["verbs"].as_array()?.iter().filter_map(|verb| verb.as_str().map(String::from)).collect(),
    })
}
