//! `cargo xtask manager`: our controllers on real Kubernetes: etcd, kube-apiserver, kube-controller-manager.
//!
//! A cluster of simulated machines is created, scaled, upgraded and deleted while managers are killed, hand over and
//! restart. kubectl uses our webhooks. A manager of one namespace ignores the others. No program may log a warning.
//! Managers have the rights of the role in `packaging/manifests/manager.yaml` and no other.
//!
//! The simulated machines are in a process of their own, `capstan sim site`, and survive their managers as real ones
//! do.

mod account;
pub mod failover;
pub mod mixed;
mod tally;
mod webhooks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::api::Api;
use crate::bed::cluster::{Cluster, examples};
use crate::bed::manager::Manager;
use crate::bed::ports::free_port;
use crate::bed::site::Site;
use crate::bed::tool::Tool;
use crate::bed::{Controllers, Flavour, Server, Workdir, capstan, wait};
use crate::peers::Cache;
use crate::text::Lap;
use tally::Tally;

const NAMESPACE: &str = "lifecycle";
const BEFORE: &str = "v1.35.0";
const AFTER: &str = "v1.36.0";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/capstan-system/leases/capstan";
const MACHINES: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/lifecycle/simmachines";

#[derive(Debug, Args)]
pub struct Options {
    /// API server to use; ours runs with the API only
    #[arg(long, default_value = "kube")]
    server: Flavour,
    /// Our binary [default: built with the profile `ci`]
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
    let folder = workdir.folder("managers")?;
    let site = Site::start(&folder, &binary).await?;
    let kubeconfig = account::create(&api, &server.kubeconfig, &folder).await?;
    let bed = Bed { folder, binary, kubeconfig, site };
    lap.end("server, site and service account ready");

    let mut first = bed.start("first", &["--install-crds"]).await?;
    let mut second = bed.start("second", &["--install-crds"]).await?;
    lap.end("managers ready");
    let kubectl = Tool::new(Cache::locate()?.built("kubectl")?, workdir.folder("home")?);
    webhooks::check(&api, &kubectl, &server.kubeconfig, workdir.path()).await?;
    lap.end("webhooks default, refuse and convert");

    let mut healthy = || server.check();
    let cluster = Cluster::prepare(&api, NAMESPACE, manifests()?).await?;
    let machines = Tally::start(&api, MACHINES).await?;
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut healthy).await?;
    let workload = cluster.workload(&workdir.path().join("workload.kubeconfig")).await?;
    cluster.wait_nodes(&workload, 2, BEFORE).await?;
    lap.end("1+1 available");

    cluster.scale(1, 2).await?;
    cluster.wait_available(1, 2, &mut healthy).await?;
    cluster.scale(1, 1).await?;
    cluster.wait_available(1, 1, &mut healthy).await?;
    ensure!(
        machines.count()? == 3,
        "expected three Machines in total (1+1, one more, one less), not {}",
        machines.count()?
    );
    lap.end("workers scaled up and down");

    let leader = holder(&api).await?.context("no leader")?;
    cluster.scale(3, 1).await?;
    wait::until("a second control plane machine", Duration::from_secs(60), || async {
        Ok((machines.count()? > 3).then_some(()))
    })
    .await?;
    first.kill()?;
    cluster.wait_available(3, 1, &mut healthy).await?;
    let next = holder(&api).await?.context("no leader")?;
    ensure!(next != leader, "the Lease did not change hands");
    ensure!(machines.count()? == 5, "expected two more machines, not {}", machines.count()? - 3);
    lap.end("leader killed, control plane scaled up by the next");

    cluster.upgrade(AFTER).await?;
    cluster.wait_nodes(&workload, 4, AFTER).await?;
    cluster.wait_available(3, 1, &mut healthy).await?;
    ensure!(machines.count()? == 9, "expected four new machines, not {}", machines.count()? - 5);
    lap.end("upgraded");

    let before = cluster.wait_rest().await?;
    second.stop()?;
    let mut third = bed.start("third", &["--install-crds"]).await?;
    wait::until("another leader", Duration::from_secs(30), || async {
        Ok(holder(&api).await?.filter(|holder| *holder != next))
    })
    .await?;
    ensure!(cluster.wait_rest().await? == before, "a restarted manager wrote something");
    lap.end("restarted, nothing written");

    cluster.delete(&mut healthy).await?;
    let left = bed.site.machines().await?;
    ensure!(left.is_empty(), "machines are left after deletion: {left:?}");
    third.stop()?;
    lap.end("deleted, nothing left");

    let fourth = one_namespace(&bed, &api).await?;
    lap.end("one of two namespaces is reconciled");
    ensure_no_warnings([first, second, third, fourth].iter().map(Manager::logged_warnings))?;
    workdir.passed();
    Ok(())
}

/// The example with the previous minor version.
fn manifests() -> Result<Vec<Value>> {
    let mut manifests = examples(&["cni.yaml", "sim-cluster.yaml"])?;
    for object in &mut manifests {
        let spec = &mut object["spec"];
        for path in ["/version", "/template/spec/version"] {
            if let Some(version) = spec.pointer_mut(path) {
                *version = BEFORE.into();
            }
        }
    }
    Ok(manifests)
}

/// Fails if a healthy program of ours logged a warning or an error.
pub fn ensure_no_warnings(logged_warnings: impl IntoIterator<Item = Result<Vec<String>>>) -> Result<()> {
    for logged_warnings in logged_warnings {
        let mut logged_warnings = logged_warnings?;
        // Workload API servers go away while their Nodes are watched: with their cluster, and one after the other in the
        // rollout of a control plane, which takes seconds here.
        logged_warnings
            .retain(|line| !(line.contains("following objects fails") && line.contains("kind=nodes")));
        ensure!(
            logged_warnings.is_empty(),
            "a healthy program of ours logged warnings:\n{}",
            logged_warnings.join("\n")
        );
    }
    Ok(())
}

/// What managers are started with.
struct Bed {
    folder: PathBuf,
    binary: PathBuf,
    kubeconfig: PathBuf,
    site: Site,
}

impl Bed {
    async fn start(&self, name: &str, arguments: &[&str]) -> Result<Manager> {
        let site = self.site.flag();
        let arguments = [arguments, &[site.as_str()]].concat();
        Manager::start(name, &self.folder, &self.binary, &self.kubeconfig, &arguments).await
    }
}

/// Starts a manager of simulated machines only.
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

/// Checks that a manager of one namespace writes nothing in another.
async fn one_namespace(bed: &Bed, api: &Api) -> Result<Manager> {
    for namespace in ["watched", "ignored"] {
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?.success()?;
    }
    // The role is for objects of one name, which is otherwise derived from the namespace.
    let mut manager = bed.start("of-one-namespace", &["--namespace=watched", "--name=capstan"]).await?;
    let path = |namespace: &str| format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/clusters");
    let mut clusters = examples(&["sim-cluster.yaml"])?;
    let cluster = clusters.iter_mut().find(|object| object["kind"] == "Cluster");
    let cluster: Value = cluster.context("the example has no Cluster")?.take();
    let ignored = api.post(&path("ignored"), &cluster).await?.success()?;
    api.post(&path("watched"), &cluster).await?.success()?;
    wait::until("the cluster is reconciled", Duration::from_secs(60), || async {
        let cluster = api.get(&format!("{}/quick", path("watched"))).await?.success()?;
        Ok(cluster["status"]["conditions"].is_array().then_some(()))
    })
    .await?;
    let now = api.get(&format!("{}/quick", path("ignored"))).await?.success()?;
    ensure!(now == ignored, "the cluster in the other namespace was written to: {now}");
    manager.stop()?;
    Ok(manager)
}
