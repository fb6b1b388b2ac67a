//! The clusters of one run: created from upstream's in-memory templates, scaled, deleted.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::api::Api;
use crate::bed::cluster::is_there;
use crate::bed::template::substituted;
use crate::bed::{install, wait};
use crate::discovery::Discovery;
use crate::peers::catalog::{CLUSTER_API, CLUSTER_API_TEST_MODULE};
use crate::peers::module_dir;

pub const NAMESPACE: &str = "fleet";
/// A workload version that Cluster API 1.14 supports. The in-memory backend runs nothing of it.
const WORKLOAD_VERSION: &str = "v1.34.0";
const TIMEOUT: Duration = Duration::from_secs(600);
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters";

#[derive(Debug)]
pub struct Fleet<'a> {
    api: &'a Api,
    discovery: Discovery,
    names: Vec<String>,
    template: String,
    classes: Vec<Value>,
}

impl<'a> Fleet<'a> {
    /// Creates the namespace and the ClusterClass with its templates.
    pub async fn prepare(api: &'a Api, count: usize) -> Result<Self> {
        let folder = module_dir(CLUSTER_API_TEST_MODULE, &format!("v{CLUSTER_API}"))?
            .join("infrastructure/docker/templates");
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("{}/{name}", folder.display()))
        };
        let classes = install::documents(&read("clusterclass-in-memory.yaml")?)?;
        let template = read("cluster-template-in-memory.yaml")?;
        let discovery = Discovery::read(api).await?;
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await?.success()?;
        for class in &classes {
            discovery.create(api, class, Some(NAMESPACE)).await?;
        }
        let names = (1..=count).map(|n| format!("fleet-{n}")).collect();
        Ok(Self { api, discovery, names, template, classes })
    }

    /// Creates every cluster with one control-plane machine and one worker.
    pub async fn create(&self) -> Result<()> {
        for name in &self.names {
            let text = substituted(&self.template, |variable| match variable {
                "CLUSTER_NAME" => Some(name.clone()),
                "NAMESPACE" => Some(NAMESPACE.to_owned()),
                "KUBERNETES_VERSION" => Some(WORKLOAD_VERSION.to_owned()),
                "CONTROL_PLANE_MACHINE_COUNT" | "WORKER_MACHINE_COUNT" => Some("1".to_owned()),
                _ => None,
            })?;
            for object in install::documents(&text)? {
                self.discovery.create(self.api, &object, Some(NAMESPACE)).await?;
            }
        }
        Ok(())
    }

    /// Waits until every cluster is Available with that many ready machines.
    pub async fn wait_available(
        &self,
        control_plane: i64,
        workers: i64,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        let mut reported = usize::MAX;
        loop {
            healthy()?;
            let list = self.api.get(CLUSTERS).await?.success()?;
            let items = list["items"].as_array().context("no items")?;
            let waiting: Vec<_> =
                items.iter().filter(|cluster| !is_there(cluster, control_plane, workers)).collect();
            if waiting.is_empty() && items.len() == self.names.len() {
                return Ok(());
            }
            if waiting.len() != reported {
                reported = waiting.len();
                println!(
                    "    {} of {} at {control_plane}+{workers}",
                    items.len() - reported,
                    self.names.len()
                );
            }
            if Instant::now() > deadline {
                let first = waiting.first().context("clusters are missing")?;
                bail!(
                    "{} of {} clusters did not become Available at {control_plane}+{workers} within {TIMEOUT:?}; {} says {}",
                    waiting.len(),
                    items.len(),
                    first["metadata"]["name"],
                    first["status"]["conditions"]
                );
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Sets the replicas of every cluster's control plane and workers.
    pub async fn scale(&self, control_plane: i64, workers: i64) -> Result<()> {
        let patch = json!([
            {"op": "replace", "path": "/spec/topology/controlPlane/replicas", "value": control_plane},
            {"op": "replace", "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": workers},
        ]);
        for name in &self.names {
            let path = format!("{CLUSTERS}/{name}");
            self.api.patch(&path, "application/json-patch+json", &patch).await?.success()?;
        }
        Ok(())
    }

    /// Deletes every cluster, waits, and checks for leftovers.
    pub async fn delete(&self, healthy: &mut impl FnMut() -> Result<()>) -> Result<()> {
        for name in &self.names {
            self.api.delete(&format!("{CLUSTERS}/{name}")).await?.success()?;
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            healthy()?;
            let left = self.left_behind().await?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("still there {TIMEOUT:?} after the clusters were deleted: {}", left.join(", "));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Objects in the namespace except the ClusterClass, its templates and what every namespace has.
    async fn left_behind(&self) -> Result<Vec<String>> {
        let came = |kind: &str, name: &str| match kind {
            "ServiceAccount" | "ConfigMap" => false,
            _ => self.classes.iter().any(|class| class["kind"] == kind && class["metadata"]["name"] == name),
        };
        self.discovery.left_in(self.api, NAMESPACE, came).await
    }

    /// Deletes the namespace with the templates and waits until it is gone.
    pub async fn delete_namespace(&self) -> Result<()> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}");
        self.api.delete(&path).await?.success()?;
        wait::until("the namespace is gone", Duration::from_secs(120), || async {
            Ok((self.api.get(&path).await?.status == 404).then_some(()))
        })
        .await
    }
}
