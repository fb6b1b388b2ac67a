//! One plane: requests to it, and the objects that it has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::roles::{self, ObjectName};
use super::scenario::Action;
use crate::api::{Api, Reply, content};
use crate::bed::install;
use crate::discovery::{Discovery, Resource};

/// A plane is at rest when it has written nothing for this long.
const REST: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(300);
const JSON_PATCH: &str = "application/json-patch+json";

/// Kinds of Cluster API that a topology neither consists of nor is made from.
const OTHERS: [&str; 9] = [
    "Machine",
    "MachineSet",
    "MachineDrainRule",
    "ClusterResourceSet",
    "ClusterResourceSetBinding",
    "ExtensionConfig",
    "IPAddress",
    "IPAddressClaim",
    "Provider",
];

pub struct Side {
    pub name: &'static str,
    pub api: Api,
    kinds: Vec<Resource>,
}

/// Objects by namespace.
pub type Objects = BTreeMap<String, Vec<Value>>;

impl Side {
    /// Installs the infrastructure kinds and reads which kinds there are.
    pub async fn new(name: &'static str, api: Api, definitions: &[Value]) -> Result<Self> {
        install::create_definitions(&api, definitions).await?;
        let mut kinds: Vec<Resource> = Vec::new();
        for resource in Discovery::read(&api).await?.resources {
            let group = group(&resource);
            if !group.ends_with("cluster.x-k8s.io")
                || !resource.namespaced
                || !resource.can("list")
                || OTHERS.contains(&resource.kind.as_str())
            {
                continue;
            }
            match kinds.iter_mut().find(|known| (self::group(known), &known.kind) == (group, &resource.kind))
            {
                Some(known) if known.api_version < resource.api_version => *known = resource,
                Some(_) => {}
                None => kinds.push(resource),
            }
        }
        Ok(Self { name, api, kinds })
    }

    fn kind(&self, kind: &str) -> Result<&Resource> {
        let found = self.kinds.iter().find(|resource| resource.kind == kind);
        found.with_context(|| format!("{} has no {kind}", self.name))
    }

    /// All objects of the compared kinds.
    pub async fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::new();
        for resource in &self.kinds {
            let mut list = self.api.get(&resource.collection(None)).await?.success()?;
            for mut item in list["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
                item["kind"] = resource.kind.as_str().into();
                item["apiVersion"] = resource.api_version.as_str().into();
                let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                objects.entry(namespace).or_default().push(item);
            }
        }
        Ok(objects)
    }

    /// Carries out an action in a namespace, or only validates it.
    pub async fn act(&self, namespace: &str, action: &Action, dry_run: bool) -> Result<Reply> {
        let query = if dry_run { "?dryRun=All" } else { "" };
        match action {
            Action::Create(object) => {
                let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
                let mut resource = self.kind(kind.unwrap_or_default())?.clone();
                resource.api_version = api_version.unwrap_or_default().to_owned();
                let mut object = object.clone();
                object["metadata"]["namespace"] = namespace.into();
                self.api.post(&(resource.collection(Some(namespace)) + query), &object).await
            }
            Action::Merge { object, with } => {
                let path = self.path(namespace, object).await? + query;
                self.api.patch(&path, content::MERGE_PATCH, with).await
            }
            Action::Patch { object, with } => {
                let path = self.path(namespace, object).await? + query;
                self.api.patch(&path, JSON_PATCH, with).await
            }
            Action::Status { object, with } => {
                let path = self.path(namespace, object).await? + "/status";
                self.api.patch(&path, content::MERGE_PATCH, with).await
            }
            Action::ControlPlaneReady { cluster, version, replicas } => {
                let path = self.path(namespace, &format!("@{cluster}/control-plane")).await? + "/status";
                let status = json!({"status": {
                    "version": version,
                    "versions": [{"version": version, "replicas": replicas}],
                    "replicas": replicas,
                    "readyReplicas": replicas,
                    "availableReplicas": replicas,
                    "upToDateReplicas": replicas,
                }});
                self.api.patch(&path, content::MERGE_PATCH, &status).await
            }
            Action::Delete(object) => self.api.delete(&(self.path(namespace, object).await? + query)).await,
        }
    }

    /// Path of an object that is named by kind and name, or by its role.
    pub async fn path(&self, namespace: &str, object: &str) -> Result<String> {
        let named = match object.strip_prefix('@') {
            Some(role) => {
                let objects = self.objects().await?.remove(namespace).unwrap_or_default();
                let found = roles::of(&objects).remove(role);
                found.with_context(|| format!("{} has no {role} in {namespace}", self.name))?
            }
            None => {
                let (kind, name) =
                    object.split_once(' ').with_context(|| format!("{object} is not an object"))?;
                ObjectName { kind: kind.to_owned(), name: name.to_owned() }
            }
        };
        let collection = self.kind(&named.kind)?.collection(Some(namespace));
        Ok(format!("{collection}/{}", named.name))
    }

    /// Waits until every class and every topology was reconciled in its present generation and nothing is written. Returns
    /// the objects.
    pub async fn at_rest(&self) -> Result<Objects> {
        let deadline = Instant::now() + TIMEOUT;
        let (mut since, mut last) = (Instant::now(), BTreeMap::new());
        loop {
            let objects = self.objects().await?;
            let versions = versions(&objects);
            if versions != last {
                (since, last) = (Instant::now(), versions);
            }
            let behind: Vec<String> = objects.values().flatten().filter_map(behind).collect();
            if behind.is_empty() && since.elapsed() >= REST {
                return Ok(objects);
            }
            if Instant::now() > deadline {
                // What it has not done shows as differences.
                println!("  {} is not at rest within {TIMEOUT:?}: {}", self.name, behind.join(", "));
                return Ok(objects);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn group(resource: &Resource) -> &str {
    resource.api_version.split_once('/').map_or("", |(group, _)| group)
}

fn versions(objects: &Objects) -> BTreeMap<String, Value> {
    let entry = |object: &Value| {
        let meta = &object["metadata"];
        (
            format!("{} {} {}", object["kind"], meta["namespace"], meta["name"]),
            meta["resourceVersion"].clone(),
        )
    };
    objects.values().flatten().map(entry).collect()
}

/// The name of an object that its controller has not seen as it is.
fn behind(object: &Value) -> Option<String> {
    let generation = &object["metadata"]["generation"];
    let seen = match object["kind"].as_str()? {
        "ClusterClass" => &object["status"]["observedGeneration"],
        "Cluster" if object["spec"]["topology"].is_object() => {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let found = conditions.into_iter().find(|it| it["type"] == "TopologyReconciled");
            found.map_or(&Value::Null, |found| &found["observedGeneration"])
        }
        _ => return None,
    };
    let name = || format!("{} {}", object["metadata"]["namespace"], object["metadata"]["name"]);
    (seen != generation).then(name)
}
