//! `cargo xtask autoscaler`: Kubernetes' cluster-autoscaler with its provider `clusterapi`, on our management plane and
//! simulated workload clusters.
//!
//! Pods without room make it add machines, up to the bounds of a node group and from none, where it knows of a machine
//! only what the status of its template says. When the Pods go, it removes exactly the machines that it chose. Groups
//! are MachineDeployments, one of them of a ClusterClass, and a MachinePool; machines are our simulated ones and those
//! of simulated clouds.
//!
//! The program cannot be built from the Go proxy, which has no version of its module, so a run has a flag for its path.

mod groups;
mod manifest;
mod pods;
mod program;
mod scenario;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::api::content;
use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::Cluster;
use crate::bed::openstack::OpenStack;
use crate::bed::ports::free_port;
use crate::bed::{Server, Workdir, capstan};
use crate::cluster_api::manager::ensure_no_warnings;
use crate::text::Lap;
use groups::Group;
use pods::Workload;
use program::Autoscaler;
use scenario::Load;

#[derive(Debug, Args)]
pub struct Options {
    /// The program cluster-autoscaler, built with the tag `clusterapi`
    #[arg(long, value_name = "FILE")]
    autoscaler: Option<PathBuf>,
    /// Only the clusters on these machines
    #[arg(long)]
    only: Option<Machines>,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// What the machines of a cluster are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Machines {
    Sim,
    Cloudstack,
    Openstack,
}

/// Machines of simulated clouds boot in up to a minute.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Account of the simulated CloudStack.
const ACCOUNT: &str = "capstan";

pub async fn run(options: Options) -> Result<()> {
    let program = program(options.autoscaler.as_deref())?;
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("autoscaler")?;
    let wanted = |machines| options.only.is_none_or(|only| only == machines);
    if wanted(Machines::Sim) {
        simulated(&workdir.folder("sim")?, &binary, &program).await?;
    }
    if wanted(Machines::Cloudstack) {
        on_cloudstack(&workdir.folder("cloudstack")?, &binary, &program).await?;
    }
    if wanted(Machines::Openstack) {
        on_openstack(&workdir.folder("openstack")?, &binary, &program).await?;
    }
    workdir.passed();
    Ok(())
}

/// Polls until the result is `Some`. Fails at once when something that must run does not.
async fn until<T>(
    what: &str,
    healthy: &mut impl FnMut() -> Result<()>,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        healthy()?;
        if let Some(found) = ask().await? {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn program(given: Option<&Path>) -> Result<PathBuf> {
    let Some(path) = given else {
        bail!(
            "give the program with --autoscaler FILE. Its module is not on the Go proxy: check out {} of \
             github.com/kubernetes/autoscaler and run `go build -tags clusterapi -o FILE .` in its folder \
             cluster-autoscaler",
            program::VERSION
        );
    };
    ensure!(path.is_file(), "there is no program at {}", path.display());
    Ok(std::path::absolute(path)?)
}

async fn simulated(folder: &Path, binary: &Path, program: &Path) -> Result<()> {
    println!("simulated machines");
    let port = format!("--simulator-port={}", free_port()?);
    let arguments = ["--simulator", "--simulator-instant", &port];
    let mut server = Server::capstan_with(&folder.join("server"), binary, free_port()?, &arguments).await?;
    plain(&folder.join("plain"), &mut server, program).await?;
    of_a_class(&folder.join("class"), &mut server, program).await?;
    ensure_no_warnings([server.logged_warnings()])?;
    server.stop()
}

/// A cluster with MachineDeployments and a MachinePool.
async fn plain(folder: &Path, server: &mut Server, program: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut lap = Lap::start();
    let api = server.api()?;
    let cluster = Cluster::prepare(&api, "plain", manifest::plain()?).await?;
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut || server.check()).await?;
    let config = folder.join("workload.kubeconfig");
    let workload = Workload::new(cluster.workload(&config).await?);
    lap.end("a cluster of 1+1 is Available");
    let mut autoscaler = Autoscaler::start(folder, program, &config, server, ("plain", "quick")).await?;
    let mut healthy = || server.check().and_then(|()| autoscaler.check());

    let group = Group::deployment(&api, "plain", "quick-workers");
    group.scale_subresource().await?;
    let load = Load { name: "web", pool: Some("web"), cpu: "1500m", pods: 3 };
    scenario::grow_and_shrink(&group, &workload, &load, 1, &mut healthy).await?;
    lap.end("a MachineDeployment went from 1 to 3 and back to 1");

    let group = Group::deployment(&api, "plain", "quick-big");
    let load = Load { name: "big", pool: Some("big"), cpu: "3", pods: 2 };
    scenario::grow_and_shrink(&group, &workload, &load, 0, &mut healthy).await?;
    lap.end("a MachineDeployment went from 0 to 2 and back to 0");

    let group = Group::pool(&api, "plain", "quick-pool");
    group.scale_subresource().await?;
    let load = Load { name: "pool", pool: None, cpu: "6", pods: 2 };
    scenario::grow_and_shrink(&group, &workload, &load, 0, &mut healthy).await?;
    lap.end("a MachinePool went from 0 to 2 and back to 0");

    autoscaler.judge()?;
    cluster.delete(&mut || server.check()).await?;
    lap.end("deleted");
    Ok(())
}

/// A cluster of a ClusterClass: the topology leaves the numbers to the autoscaler.
async fn of_a_class(folder: &Path, server: &mut Server, program: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut lap = Lap::start();
    let api = server.api()?;
    let cluster = Cluster::prepare(&api, "class", manifest::of_a_class()?).await?;
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut || server.check()).await?;
    let config = folder.join("workload.kubeconfig");
    let workload = Workload::new(cluster.workload(&config).await?);
    lap.end("a cluster of a ClusterClass, 1+1, is Available");
    let mut autoscaler = Autoscaler::start(folder, program, &config, server, ("class", "one")).await?;
    let mut healthy = || server.check().and_then(|()| autoscaler.check());

    let group = Group::of_topology(&api, "class", "md-0").await?;
    let load = Load { name: "web", pool: Some("web"), cpu: "1500m", pods: 3 };
    scenario::grow(&group, &workload, &load, 1, &mut healthy).await?;
    // The topology changes while the autoscaler has the number.
    let change = json!([{
        "op": "add", "path": "/spec/topology/workers/machineDeployments/0/metadata/labels/changed", "value": "yes",
    }]);
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/class/clusters/one";
    api.patch(path, content::JSON_PATCH, &change).await?.success()?;
    group.wait_label("changed", "yes", &mut healthy).await?;
    cluster.wait_rest().await?;
    ensure!(group.size().await? == 3, "the topology changed the number of machines: {}", group.size().await?);
    scenario::shrink(&group, &workload, &load, 1, &mut healthy).await?;
    lap.end("a MachineDeployment of the topology went from 1 to 3 and back to 1");

    let group = Group::of_topology(&api, "class", "big").await?;
    let load = Load { name: "big", pool: Some("big"), cpu: "1500m", pods: 2 };
    scenario::grow_and_shrink(&group, &workload, &load, 0, &mut healthy).await?;
    lap.end("another went from 0 to 2 and back to 0");

    autoscaler.judge()?;
    cluster.delete(&mut || server.check()).await?;
    lap.end("deleted");
    Ok(())
}

/// A cluster from our template for autoscaled workers.
async fn on_cloudstack(folder: &Path, binary: &Path, program: &Path) -> Result<()> {
    println!("a simulated CloudStack");
    let mut lap = Lap::start();
    let mut cloud = CloudStack::start(folder, binary, manifest::VERSION, ACCOUNT).await?;
    let mut server = Server::capstan_with(&folder.join("server"), binary, free_port()?, &[]).await?;
    let api = server.api()?;
    let secret = cloud.secret(manifest::KEYS);
    api.post("/api/v1/namespaces/default/secrets", &secret).await?.success()?;
    let cluster = Cluster::prepare(&api, "cloudy", manifest::on_cloudstack(&cloud)?).await?;
    cluster.create().await?;
    let config = folder.join("workload.kubeconfig");
    cluster.install_cni(&config).await?;
    cluster.wait_available(1, 0, &mut || server.check().and_then(|()| cloud.check())).await?;
    let workload = Workload::new(cluster.workload(&config).await?);
    lap.end("a cluster of 1+0 is Available");
    let mut autoscaler = Autoscaler::start(folder, program, &config, &server, ("cloudy", "cloudy")).await?;
    let mut healthy = || server.check().and_then(|()| cloud.check()).and_then(|()| autoscaler.check());
    let group = Group::deployment(&api, "cloudy", "cloudy-md-0");
    let load = Load { name: "web", pool: None, cpu: "3", pods: 3 };
    scenario::grow_and_shrink(&group, &workload, &load, 0, &mut healthy).await?;
    lap.end("a MachineDeployment went from 0 to 3 and back to 0");
    autoscaler.judge()?;
    cluster.delete(&mut || server.check()).await?;
    let left = cloud.leaks().await?;
    ensure!(left.is_empty(), "left in the cloud: {left:?}");
    lap.end("deleted, nothing is left in the cloud");
    ensure_no_warnings([server.logged_warnings(), cloud.logged_warnings()])?;
    server.stop()
}

async fn on_openstack(folder: &Path, binary: &Path, program: &Path) -> Result<()> {
    println!("a simulated OpenStack");
    let mut lap = Lap::start();
    let mut cloud = OpenStack::start(folder, binary, manifest::VERSION).await?;
    let mut server = Server::capstan_with(&folder.join("server"), binary, free_port()?, &[]).await?;
    let api = server.api()?;
    let cluster = Cluster::prepare(&api, "stacky", manifest::on_openstack(&cloud)?).await?;
    cluster.create().await?;
    let config = folder.join("workload.kubeconfig");
    cluster.install_cni(&config).await?;
    cluster.wait_available(1, 0, &mut || server.check().and_then(|()| cloud.check())).await?;
    let workload = Workload::new(cluster.workload(&config).await?);
    lap.end("a cluster of 1+0 is Available");
    let mut autoscaler = Autoscaler::start(folder, program, &config, &server, ("stacky", "stacky")).await?;
    let mut healthy = || server.check().and_then(|()| cloud.check()).and_then(|()| autoscaler.check());
    let group = Group::deployment(&api, "stacky", "stacky-workers");
    let load = Load { name: "web", pool: None, cpu: "1500m", pods: 3 };
    scenario::grow_and_shrink(&group, &workload, &load, 0, &mut healthy).await?;
    lap.end("a MachineDeployment went from 0 to 3 and back to 0");
    autoscaler.judge()?;
    cluster.delete(&mut || server.check()).await?;
    let left = cloud.leaks().await?;
    ensure!(left.is_empty(), "left in the cloud: {left:?}");
    lap.end("deleted, nothing is left in the cloud");
    ensure_no_warnings([server.logged_warnings(), cloud.logged_warnings()])?;
    server.stop()
}
