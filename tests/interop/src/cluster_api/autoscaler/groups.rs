//! Node groups: the objects that the autoscaler scales, and their Machines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::until;
use crate::api::Api;

const ROOT: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces";
/// With it, the autoscaler names the Machine that has to go.
const CHOSEN: &str = "cluster.x-k8s.io/delete-machine";

/// A MachineDeployment or a MachinePool.
#[derive(Debug)]
pub struct Group<'a> {
    api: &'a Api,
    namespace: String,
    plural: &'static str,
    pub name: String,
    /// Label of its Machines that has its name.
    label: &'static str,
}

/// A Machine of a group.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub node: String,
    pub created: String,
}

impl<'a> Group<'a> {
    pub fn deployment(api: &'a Api, namespace: &str, name: &str) -> Self {
        let (plural, label) = ("machinedeployments", "cluster.x-k8s.io/deployment-name");
        Self { api, namespace: namespace.to_owned(), plural, name: name.to_owned(), label }
    }

    pub fn pool(api: &'a Api, namespace: &str, name: &str) -> Self {
        let (plural, label) = ("machinepools", "cluster.x-k8s.io/pool-name");
        Self { api, namespace: namespace.to_owned(), plural, name: name.to_owned(), label }
    }

    /// The MachineDeployment of a topology, by its name there.
    pub async fn of_topology(api: &'a Api, namespace: &str, topology_name: &str) -> Result<Self> {
        let label = format!("topology.cluster.x-k8s.io/deployment-name%3D{topology_name}");
        let path = format!("{ROOT}/{namespace}/machinedeployments?labelSelector={label}");
        let list = api.get(&path).await?.success()?;
        let name = list["items"][0]["metadata"]["name"].as_str();
        Ok(Self::deployment(api, namespace, name.with_context(|| format!("no {topology_name}"))?))
    }

    fn path(&self) -> String {
        format!("{ROOT}/{}/{}/{}", self.namespace, self.plural, self.name)
    }

    async fn get(&self) -> Result<Value> {
        self.api.get(&self.path()).await?.success()
    }

    /// The desired number of machines.
    pub async fn size(&self) -> Result<i64> {
        self.get().await?["spec"]["replicas"].as_i64().context("no replicas")
    }

    /// Waits until that many machines are desired and there, none more.
    pub async fn wait_size(&self, size: i64, healthy: &mut impl FnMut() -> Result<()>) -> Result<()> {
        until(&format!("{} has {size} machines", self.name), healthy, async || {
            let object = self.get().await?;
            let there = object["status"]["replicas"].as_i64().unwrap_or(0);
            let machines = i64::try_from(self.machines().await?.len())?;
            Ok((object["spec"]["replicas"] == size && there == size && machines == size).then_some(()))
        })
        .await
    }

    pub async fn wait_label(
        &self,
        key: &str,
        value: &str,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        until(&format!("{} has the label {key}", self.name), healthy, async || {
            Ok((self.get().await?["metadata"]["labels"][key] == value).then_some(()))
        })
        .await
    }

    /// Its Machines, oldest first.
    pub async fn machines(&self) -> Result<Vec<Member>> {
        let list = self.api.get(&self.machines_path()).await?.success()?;
        let machines = list["items"].as_array().context("no items")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut members: Vec<Member> = machines
            .iter()
            .map(|machine| Member {
                name: text(&machine["metadata"]["name"]),
                node: text(&machine["status"]["nodeRef"]["name"]),
                created: text(&machine["metadata"]["creationTimestamp"]),
            })
            .collect();
        members.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
        Ok(members)
    }

    fn machines_path(&self) -> String {
        let selector = format!("{}%3D{}", self.label, self.name);
        format!("{ROOT}/{}/machines?labelSelector={selector}", self.namespace)
    }

    /// Resources of a machine, as the status of the template or of the pool's infrastructure has them.
    pub async fn capacity(&self) -> Result<BTreeMap<String, String>> {
        let object = self.get().await?;
        let reference = &object["spec"]["template"]["spec"]["infrastructureRef"];
        let text = |key: &str| reference[key].as_str().with_context(|| format!("no {key}"));
        let (group, kind, name) = (text("apiGroup")?, text("kind")?, text("name")?);
        let versions = self.api.get(&format!("/apis/{group}")).await?.success()?;
        let versions = versions["versions"].as_array().context("no versions")?;
        let plural = format!("{}s", kind.to_lowercase());
        for version in versions.iter().filter_map(|version| version["version"].as_str()) {
            let path = format!("/apis/{group}/{version}/namespaces/{}/{plural}/{name}", self.namespace);
            let reply = self.api.get(&path).await?;
            if reply.status.is_success() {
                let capacity = &reply.json()?["status"]["capacity"];
                return Ok(serde_json::from_value(capacity.clone()).unwrap_or_default());
            }
        }
        Err(anyhow!("no {kind} {name}"))
    }

    /// The scale subresource has the numbers of the object and, if it selects Machines, a selector.
    pub async fn scale_subresource(&self) -> Result<()> {
        let (object, scale) =
            (self.get().await?, self.api.get(&format!("{}/scale", self.path())).await?.success()?);
        ensure!(scale["spec"]["replicas"] == object["spec"]["replicas"], "{scale}");
        let there = object["status"]["replicas"].as_i64().unwrap_or(0);
        ensure!(scale["status"]["replicas"] == there, "{scale}");
        let selector = scale["status"]["selector"].as_str().unwrap_or_default();
        ensure!(selector.is_empty() == (self.plural == "machinepools"), "{scale}");
        Ok(())
    }

    /// Starts to watch which Machines the autoscaler chooses.
    pub async fn watch_choices(&self) -> Result<Choices> {
        let mut events = self.api.watch(&format!("{}&watch=true", self.machines_path())).await?;
        let chosen = Arc::new(Mutex::new(BTreeSet::new()));
        let shared = chosen.clone();
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = events.next_line().await {
                let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
                let metadata = &event["object"]["metadata"];
                let name = metadata["name"].as_str().unwrap_or_default().to_owned();
                if metadata["annotations"][CHOSEN].is_string()
                    && let Ok(mut chosen) = shared.lock()
                {
                    chosen.insert(name);
                }
            }
        });
        Ok(Choices { chosen, task })
    }
}

/// Machines that had the annotation of the autoscaler.
#[derive(Debug)]
pub struct Choices {
    chosen: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

impl Choices {
    pub fn names(&self) -> Result<BTreeSet<String>> {
        Ok(self.chosen.lock().map_err(|_| anyhow!("watching Machines panicked"))?.clone())
    }
}

impl Drop for Choices {
    fn drop(&mut self) {
        self.task.abort();
    }
}
