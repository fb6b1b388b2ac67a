//! `cargo xtask manager`: our controllers on real Kubernetes: etcd, kube-apiserver, kube-controller-manager.
//!
//! A cluster of simulated machines is created, grown, upgraded and deleted while managers come and go; kubectl
//! meets our webhooks; a manager of one namespace leaves the others alone.

pub mod mixed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::api::{Api, content};
use crate::bed::cluster::{Cluster, examples};
use crate::bed::manager::Manager;
use crate::bed::ports::free_port;
use crate::bed::{Controllers, Flavour, Server, Workdir, capstan, wait};
use crate::text::Lap;

const NAMESPACE: &str = "life";
const BEFORE: &str = "v1.36.0";
const AFTER: &str = "v1.36.1";
/// Everything but infrastructure: the simulated machines live in a process that stays.
const WORKERS: &str = "--controllers=core,bootstrap,control-plane,addons";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/capstan-system/leases/capstan-core-bootstrap-control-plane-addons";

#[derive(Debug, Args)]
pub struct Options {
    /// Which API server; our own has nothing but its API
    #[arg(long, default_value = "kube")]
    server: Flavour,
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("manager")?;
    let mut lap = Lap::start();
    let folder = workdir.folder("server")?;
    let mut server = match options.server {
        Flavour::Kube => Server::kube(&folder, Controllers::Plane).await?,
        Flavour::Capstan => Server::capstan(&folder, &binary, free_port()?).await?,
    };
    let api = server.api()?;
    let bed = Bed { folder: workdir.folder("managers")?, binary, kubeconfig: server.kubeconfig.clone() };
    lap.end("server ready");

    let first = bed.start("first", &[WORKERS, "--install-crds"]).await?;
    let mut infrastructure = bed.infrastructure().await?;
    let second = bed.start("second", &[WORKERS, "--install-crds"]).await?;
    lap.end("managers ready");
    judged(&api).await?;
    lap.end("webhooks default, refuse and convert");

    let leader = holder(&api).await?.context("nobody leads")?;
    let cluster = Cluster::prepare(&api, NAMESPACE, examples(&["cni.yaml", "sim-cluster.yaml"])?).await?;
    cluster.create().await?;
    let mut healthy = || server.check().and_then(|()| infrastructure.check());
    cluster.wait_available(1, 1, &mut healthy).await?;
    let workload = cluster.workload(&workdir.path().join("workload.kubeconfig")).await?;
    cluster.wait_nodes(&workload, 2, BEFORE).await?;
    lap.end("1+1 available");

    first.stop()?;
    cluster.scale(3, 3).await?;
    cluster.wait_available(3, 3, &mut healthy).await?;
    let next = holder(&api).await?.context("nobody leads")?;
    ensure!(next != leader, "the Lease did not change hands");
    lap.end("handed over and scaled to 3+3");

    cluster.upgrade(AFTER).await?;
    cluster.wait_nodes(&workload, 6, AFTER).await?;
    cluster.wait_available(3, 3, &mut healthy).await?;
    lap.end("upgraded");

    cluster.delete(&mut healthy).await?;
    second.stop()?;
    lap.end("deleted, nothing left");

    one_namespace(&bed, &api).await?;
    lap.end("one namespace of two is looked after");
    workdir.passed();
    Ok(())
}

/// Where managers are started.
struct Bed {
    folder: PathBuf,
    binary: PathBuf,
    kubeconfig: PathBuf,
}

impl Bed {
    async fn start(&self, name: &str, arguments: &[&str]) -> Result<Manager> {
        Manager::start(name, &self.folder, &self.binary, &self.kubeconfig, arguments).await
    }

    /// The provider with its simulated machines.
    async fn infrastructure(&self) -> Result<Manager> {
        simulated(&self.folder, &self.binary, &self.kubeconfig).await
    }
}

/// A manager of simulated machines alone.
async fn simulated(folder: &Path, binary: &Path, kubeconfig: &Path) -> Result<Manager> {
    let port = format!("--simulator-port={}", free_port()?);
    let arguments =
        ["--controllers=infrastructure", "--install-crds", "--simulator", "--simulator-instant", &port];
    Manager::start("infrastructure", folder, binary, kubeconfig, &arguments).await
}

async fn holder(api: &Api) -> Result<Option<String>> {
    let lease = api.get(LEASE).await?.success()?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    Ok(Some(holder).filter(|holder| !holder.is_empty()))
}

/// A manifest in the earlier version is defaulted, stored in ours, refused where upstream refuses it.
async fn judged(api: &Api) -> Result<()> {
    let path =
        |version: &str| format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/machinedeployments");
    let body = |version: &str| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
            "metadata": {"name": "old", "annotations": {"cluster.x-k8s.io/paused": ""}},
            "spec": {
                "clusterName": "none", "replicas": 0, "selector": {},
                "template": {"spec": {
                    "clusterName": "none", "version": version, "bootstrap": {"dataSecretName": "s"},
                    "infrastructureRef": {
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "SimMachineTemplate", "name": "t",
                    },
                }},
            },
        })
    };
    let refused = api.post(&path("v1beta1"), &body("latest")).await?;
    ensure!(refused.status == 422, "a version that is none was answered {}", refused.status);
    api.post(&path("v1beta1"), &body("1.36.0")).await?.success()?;
    let object = format!("{}/old", path("v1beta2"));
    let stored = api.get(&object).await?.success()?;
    let template = &stored["spec"]["template"]["spec"];
    ensure!(template["version"] == "v1.36.0", "no default for the version: {template}");
    ensure!(template["infrastructureRef"]["apiGroup"].is_string(), "not converted: {template}");
    let immutable = json!({"spec": {"clusterName": "other"}});
    let refused = api.patch(&object, content::MERGE_PATCH, &immutable).await?;
    ensure!(refused.status == 422, "another cluster was answered {}", refused.status);
    api.delete(&object).await?.success()?;
    wait::until("the MachineDeployment is gone", Duration::from_secs(30), || async {
        Ok((api.get(&object).await?.status == 404).then_some(()))
    })
    .await
}

/// A manager of one namespace writes nothing in another.
async fn one_namespace(bed: &Bed, api: &Api) -> Result<()> {
    for namespace in ["watched", "ignored"] {
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?.success()?;
    }
    let manager = bed.start("of-one-namespace", &[WORKERS, "--namespace=watched"]).await?;
    let path = |namespace: &str| format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/clusters");
    let mut clusters = examples(&["sim-cluster.yaml"])?;
    let cluster = clusters.iter_mut().find(|object| object["kind"] == "Cluster");
    let cluster: Value = cluster.context("the example has no Cluster")?.take();
    let ignored = api.post(&path("ignored"), &cluster).await?.success()?;
    api.post(&path("watched"), &cluster).await?.success()?;
    wait::until("the cluster is looked after", Duration::from_secs(60), || async {
        let cluster = api.get(&format!("{}/quick", path("watched"))).await?.success()?;
        Ok(cluster["status"]["conditions"].is_array().then_some(()))
    })
    .await?;
    let now = api.get(&format!("{}/quick", path("ignored"))).await?.success()?;
    ensure!(now == ignored, "the cluster in the other namespace was written to: {now}");
    manager.stop()
}
