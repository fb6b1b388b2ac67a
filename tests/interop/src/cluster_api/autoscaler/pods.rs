//! Pods of a workload cluster that need room.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::scenario::Load;
use super::until;
use crate::api::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A workload cluster.
#[derive(Debug)]
pub struct Workload {
    api: Api,
}

impl Workload {
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    /// Creates the Pods of a load. They have no controller, so that those which are deleted stay away.
    pub async fn create(&self, load: &Load<'_>) -> Result<()> {
        for n in 0..load.pods {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{}-{n}", load.name), "labels": {"load": load.name}},
                "spec": {"containers": [{
                    "name": "main", "image": "example.org/main:v1", "resources": {"requests": {"cpu": load.cpu}},
                }]},
            });
            if let Some(pool) = load.pool {
                pod["spec"]["nodeSelector"] = json!({super::manifest::POOL: pool});
            }
            self.api.post(PODS, &pod).await?.success()?;
        }
        Ok(())
    }

    pub async fn delete(&self, pod: &str, healthy: &mut impl FnMut() -> Result<()>) -> Result<()> {
        let path = format!("{PODS}/{pod}");
        self.api.delete(&path).await?.success()?;
        until(&format!("Pod {pod} is gone"), healthy, async || {
            Ok((self.api.get(&path).await?.status == 404).then_some(()))
        })
        .await
    }

    /// Waits until every Pod of a load runs. Returns their Nodes by name of the Pod.
    pub async fn wait_running(
        &self,
        load: &Load<'_>,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<BTreeMap<String, String>> {
        let what = format!("{} Pods of {} run", load.pods, load.name);
        until(&what, healthy, async || self.running(load).await).await
    }

    /// Nodes by name of the Pod, if every Pod of a load runs.
    async fn running(&self, load: &Load<'_>) -> Result<Option<BTreeMap<String, String>>> {
        let list = self.api.get(&format!("{PODS}?labelSelector=load%3D{}", load.name)).await?.success()?;
        let pods = list["items"].as_array().context("no items")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
        let placed: BTreeMap<String, String> =
            running.map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]))).collect();
        Ok((placed.len() == load.pods).then_some(placed))
    }

    /// Names of all Nodes.
    pub async fn nodes(&self) -> Result<Vec<String>> {
        let list = self.api.get("/api/v1/nodes").await?.success()?;
        let nodes = list["items"].as_array().context("no items")?;
        Ok(nodes.iter().filter_map(|node| node["metadata"]["name"].as_str()).map(ToOwned::to_owned).collect())
    }
}
