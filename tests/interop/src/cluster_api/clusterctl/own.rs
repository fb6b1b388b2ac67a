//! Simulated clusters under our own controllers, managed with clusterctl.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{describe, moved, rollout};
use crate::bed::cluster::{Cluster, example, examples};
use crate::bed::ports::free_port;
use crate::bed::site::Site;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir};
use crate::peers::Cache;
use crate::text::Lap;

/// Namespace and name of the example.
pub(super) const NAMESPACE: &str = "owned";
pub(super) const NAME: &str = "quick";

/// Programs and folders of one run.
pub(super) struct Bed<'a> {
    pub(super) binary: &'a Path,
    pub(super) clusterctl: Tool,
    pub(super) kubectl: Tool,
    pub(super) site: Site,
    pub(super) workdir: &'a Workdir,
}

impl Bed<'_> {
    /// Starts a plane that uses the machines of the site.
    pub(super) async fn plane(&self, name: &str) -> Result<Server> {
        let folder = self.workdir.folder(name)?;
        Server::capstan_with(&folder, self.binary, free_port()?, &[&self.site.flag()]).await
    }

    /// Runs clusterctl on a plane, in the namespace of the example.
    pub(super) async fn ctl(&self, plane: &Server, arguments: &[&str]) -> Result<String> {
        let arguments = [arguments, &["--namespace", NAMESPACE]].concat();
        self.clusterctl.run(&plane.kubeconfig, &arguments).await
    }
}

pub(super) async fn run(binary: &Path) -> Result<()> {
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("clusterctl-own")?;
    let home = workdir.folder("home")?;
    let bed = Bed {
        binary,
        clusterctl: Tool::new(cache.built("clusterctl")?, home.clone()),
        kubectl: Tool::new(cache.built("kubectl")?, home),
        site: Site::start(workdir.path(), binary).await?,
        workdir: &workdir,
    };
    let mut lap = Lap::start();
    let mut first = bed.plane("first").await?;
    let api = first.api()?;
    let cluster = Cluster::prepare(&api, NAMESPACE, examples(&["cni.yaml", "sim-cluster.yaml"])?).await?;
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut || first.check()).await?;
    lap.end("1+1 available");

    describe::run(&bed, &first).await?;
    lap.end("described");
    let config = bed.ctl(&first, &["get", "kubeconfig", NAME]).await?;
    let workload = workdir.path().join("workload.kubeconfig");
    std::fs::write(&workload, config)?;
    let nodes = bed.kubectl.run(&workload, &["get", "nodes", "-o", "name"]).await?;
    ensure!(nodes.lines().count() == 2, "the workload cluster should have two nodes:\n{nodes}");
    lap.end("its kubeconfig works: two nodes");

    generated(&bed, &mut first).await?;
    lap.end("a second one generated from a template, available, deleted");
    rollout::run(&bed, &mut first, &cluster).await?;
    lap.end("rolled out, paused, resumed");
    moved::run(&bed, first, &workload, &mut lap).await?;
    drop(bed);
    workdir.passed();
    Ok(())
}

/// Creates a cluster from a template with variables.
async fn generated(bed: &Bed<'_>, plane: &mut Server) -> Result<()> {
    let template = example("sim-cluster-template.yaml");
    let template = template.to_str().context("path")?;
    let asked = ["generate", "cluster", "second", "--from", template, "--list-variables"];
    let variables = bed.clusterctl.run(&plane.kubeconfig, &asked).await?;
    for name in ["CLUSTER_NAME", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT"]
    {
        ensure!(variables.contains(name), "the template has no variable {name}:\n{variables}");
    }
    // `generate yaml` has no flags for name and version: variables without a value get their default.
    let listed = bed.clusterctl.plain(&["generate", "yaml", "--from", template, "--list-variables"]).await?;
    ensure!(listed.contains("KUBERNETES_VERSION"), "generate yaml lists no variables:\n{listed}");
    let made = [
        "generate",
        "cluster",
        "second",
        "--from",
        template,
        "--kubernetes-version",
        "v1.36.0",
        "--worker-machine-count",
        "2",
        "--target-namespace",
        NAMESPACE,
    ];
    let manifest = bed.workdir.path().join("second.yaml");
    std::fs::write(&manifest, bed.clusterctl.run(&plane.kubeconfig, &made).await?)?;
    let manifest = manifest.to_str().context("path")?;
    bed.kubectl.run(&plane.kubeconfig, &["apply", "-f", manifest]).await?;
    let api = plane.api()?;
    let text = std::fs::read_to_string(manifest)?;
    let second = Cluster::known(&api, NAMESPACE, crate::bed::install::documents(&text)?).await?;
    second.wait_available(1, 2, &mut || plane.check()).await?;
    bed.kubectl
        .run(&plane.kubeconfig, &["delete", "cluster", "second", "-n", NAMESPACE, "--timeout=120s"])
        .await?;
    Ok(())
}
