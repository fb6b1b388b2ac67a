//! The lifecycle of one cluster from manifests: create, scale, upgrade, delete. Works with any controllers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{install, wait};
use crate::api::{Api, content};
use crate::discovery::Discovery;

const TIMEOUT: Duration = Duration::from_secs(300);
/// A cluster is idle when nothing has been written for this long.
const REST: Duration = Duration::from_secs(5);
const GROUP: &str = "cluster.x-k8s.io";

/// A cluster in a namespace of its own.
#[derive(Debug)]
pub struct Cluster<'a> {
    api: &'a Api,
    discovery: Discovery,
    namespace: String,
    name: String,
    manifests: Vec<Value>,
    patience: Duration,
}

impl<'a> Cluster<'a> {
    /// Reads manifests that contain one Cluster. Creates only the namespace.
    pub async fn prepare(api: &'a Api, namespace: &str, manifests: Vec<Value>) -> Result<Self> {
        let body = json!({"metadata": {"name": namespace}});
        api.post("/api/v1/namespaces", &body).await?.success()?;
        Self::known(api, namespace, manifests).await
    }

    /// A cluster that was created from these manifests elsewhere.
    pub async fn known(api: &'a Api, namespace: &str, manifests: Vec<Value>) -> Result<Self> {
        let discovery = Discovery::read(api).await?;
        let cluster = manifests.iter().find(|object| object["kind"] == "Cluster");
        let name = cluster.and_then(|cluster| cluster["metadata"]["name"].as_str());
        let name = name.context("the manifests have no Cluster")?.to_owned();
        Ok(Self { api, discovery, namespace: namespace.to_owned(), name, manifests, patience: TIMEOUT })
    }

    /// Waits this long for each change, in place of five minutes.
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Creates every object.
    pub async fn create(&self) -> Result<()> {
        for object in &self.manifests {
            self.discovery.create(self.api, object, Some(&self.namespace)).await?;
        }
        Ok(())
    }

    fn path(&self, group: &str, plural: &str, name: &str) -> String {
        format!("/apis/{group}/v1beta2/namespaces/{}/{plural}/{name}", self.namespace)
    }

    /// Reads the Cluster.
    pub async fn get(&self) -> Result<Value> {
        self.api.get(&self.path(GROUP, "clusters", &self.name)).await?.success()
    }

    /// Patches the control plane and every MachineDeployment.
    pub async fn change(&self, control_plane: Value, workers: Value) -> Result<()> {
        let group = format!("controlplane.{GROUP}");
        for object in &self.manifests {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let (path, change) = match object["kind"].as_str() {
                Some("KubeadmControlPlane") => {
                    (self.path(&group, "kubeadmcontrolplanes", name), &control_plane)
                }
                Some("MachineDeployment") => (self.path(GROUP, "machinedeployments", name), &workers),
                _ => continue,
            };
            self.api.patch(&path, content::MERGE_PATCH, change).await?.success().context(path)?;
        }
        Ok(())
    }

    /// Sets the replicas of the control plane and of each MachineDeployment.
    pub async fn scale(&self, control_plane: i64, workers: i64) -> Result<()> {
        let replicas = |n: i64| json!({"spec": {"replicas": n}});
        self.change(replicas(control_plane), replicas(workers)).await
    }

    /// Sets the version of all machines.
    pub async fn upgrade(&self, version: &str) -> Result<()> {
        self.change(
            json!({"spec": {"version": version}}),
            json!({"spec": {"template": {"spec": {"version": version}}}}),
        )
        .await
    }

    /// Waits until the cluster is Available with that many ready machines of the desired version.
    pub async fn wait_available(
        &self,
        control_plane: i64,
        workers: i64,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        loop {
            healthy()?;
            let cluster = self.get().await?;
            if is_there(&cluster, control_plane, workers) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "{} is not Available at {control_plane}+{workers} within {:?}: {}",
                    self.name,
                    self.patience,
                    serde_json::to_string_pretty(&cluster["status"])?
                );
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A client of the workload cluster. Writes the kubeconfig of its Secret to `file`.
    pub async fn workload(&self, file: &Path) -> Result<Api> {
        let path = format!("/api/v1/namespaces/{}/secrets/{}-kubeconfig", self.namespace, self.name);
        let secret = self.api.get(&path).await?.success()?;
        let text = BASE64.decode(secret["data"]["value"].as_str().context("no kubeconfig")?)?;
        std::fs::write(file, text)?;
        Api::from_kubeconfig(file)
    }

    /// Installs the example's CNI as soon as the cluster's API server answers.
    pub async fn install_cni(&self, kubeconfig: &Path) -> Result<()> {
        let workload = wait::until("the cluster's API server answers", self.patience, || async {
            let Ok(workload) = self.workload(kubeconfig).await else { return Ok(None) };
            Ok(workload.get("/readyz").await?.status.is_success().then_some(workload))
        })
        .await?;
        let discovery = Discovery::read(&workload).await?;
        for object in examples(&["cni.yaml"])?.iter().filter(|object| object["kind"] == "ConfigMap") {
            let text = object["data"]["cni.yaml"].as_str().context("no CNI in the example")?;
            for object in install::documents(text)? {
                discovery.create(&workload, &object, None).await?;
            }
        }
        Ok(())
    }

    /// Waits until the workload cluster has that many Nodes, all Ready and of one version.
    pub async fn wait_nodes(&self, workload: &Api, count: usize, version: &str) -> Result<()> {
        let what = format!("{count} ready nodes of {version} in {}", self.name);
        wait::until(&what, self.patience, || async {
            let list = workload.get("/api/v1/nodes").await?.success()?;
            let nodes = list["items"].as_array().context("no items")?;
            let ready = |node: &&Value| {
                let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
                let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
                conditions.into_iter().any(is_ready)
                    && node["status"]["nodeInfo"]["kubeletVersion"] == version
            };
            Ok((nodes.len() == count && nodes.iter().filter(ready).count() == count).then_some(()))
        })
        .await
    }

    /// Resource versions of all objects in its namespace, by kind and name.
    pub async fn versions(&self) -> Result<BTreeMap<String, String>> {
        let objects = self.discovery.objects_in(self.api, &self.namespace).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = |(kind, object): (String, Value)| {
            let meta = &object["metadata"];
            (format!("{kind} {}", text(&meta["name"])), text(&meta["resourceVersion"]))
        };
        Ok(objects.into_iter().map(version).collect())
    }

    /// Waits until nothing in its namespace has been written for some seconds. Returns the resource versions.
    pub async fn wait_rest(&self) -> Result<BTreeMap<String, String>> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut last = self.versions().await?;
        loop {
            tokio::time::sleep(REST).await;
            let now = self.versions().await?;
            if now == last {
                return Ok(now);
            }
            let busy = now.iter().filter(|(name, version)| last.get(*name) != Some(version));
            let busy: Vec<_> = busy.map(|(name, _)| name.as_str()).collect();
            ensure!(Instant::now() < deadline, "{} is still being written: {}", self.name, busy.join(", "));
            last = now;
        }
    }

    /// Deletes the Cluster and waits until every object that was created for it is gone, including those of the
    /// manifests.
    pub async fn delete(&self, healthy: &mut impl FnMut() -> Result<()>) -> Result<()> {
        self.api.delete(&self.path(GROUP, "clusters", &self.name)).await?.success()?;
        let deadline = Instant::now() + self.patience;
        loop {
            healthy()?;
            let left = self.left_behind().await?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "still there {:?} after the cluster was deleted: {}",
                self.patience,
                left.join(", ")
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Objects that should have been deleted with the cluster. Leaves out what every namespace has and what outlives
    /// clusters: a ClusterResourceSet serves many clusters, and a Secret of the manifests is its user's. Templates are
    /// owned by the Cluster and go with it.
    async fn left_behind(&self) -> Result<Vec<String>> {
        let came = |kind: &str, name: &str| {
            self.manifests.iter().any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        };
        let stays = |kind: &str, name: &str| {
            matches!(kind, "ConfigMap" | "ClusterResourceSet" | "Secret") && came(kind, name)
        };
        self.discovery.left_in(self.api, &self.namespace, stays).await
    }
}

/// Path of an example, by its file name.
pub fn example(name: &str) -> PathBuf {
    crate::cargo::root().join("examples").join(name)
}

/// All documents of some examples, by file name.
pub fn examples(names: &[&str]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for name in names {
        let path = example(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        all.extend(install::documents(&text).with_context(|| path.display().to_string())?);
    }
    Ok(all)
}

/// Whether a cluster is Available, with that many machines, all ready and up to date.
pub fn is_there(cluster: &Value, control_plane: i64, workers: i64) -> bool {
    let status = &cluster["status"];
    let available = status["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|condition| condition["type"] == "Available" && condition["status"] == "True")
    });
    let counts = |part: &str, wanted: i64| {
        ["replicas", "readyReplicas", "upToDateReplicas"].iter().all(|count| status[part][*count] == wanted)
    };
    available && counts("controlPlane", control_plane) && counts("workers", workers)
}
