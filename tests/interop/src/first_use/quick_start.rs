//! `cargo xtask quick-start`: the commands of the README, with kubectl and clusterctl on `capstan server
//! --simulator`.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::bed::cluster::example;
use crate::bed::ports::free_port;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir, capstan};
use crate::cluster_api::manager::ensure_no_warnings;
use crate::peers::Cache;
use crate::text::Lap;

const NAME: &str = "quick";

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("quick-start")?;
    let home = workdir.folder("home")?;
    let kubectl = Tool::new(cache.built("kubectl")?, home.clone());
    let clusterctl = Tool::new(cache.built("clusterctl")?, home);
    let mut lap = Lap::start();
    let port = format!("--simulator-port={}", free_port()?);
    let arguments = ["--simulator", "--simulator-instant", &port];
    let mut server =
        Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &arguments).await?;
    let management = server.kubeconfig.clone();
    lap.end("server ready");

    for file in ["cni.yaml", "sim-cluster.yaml"] {
        let path = example(file);
        kubectl.run(&management, &["apply", "-f", path.to_str().context("path")?]).await?;
    }
    let available = ["wait", "cluster/quick", "--for=condition=Available", "--timeout=180s"];
    kubectl.run(&management, &available).await?;
    server.check()?;
    lap.end("cluster available");

    let tree = clusterctl.run(&management, &["describe", "cluster", NAME, "--show-conditions=all"]).await?;
    for expected in
        ["Cluster/quick", "SimCluster/quick", "KubeadmControlPlane/quick", "MachineDeployment/quick-workers"]
    {
        let (kind, name) = expected.split_once('/').context("a kind and a name")?;
        let line = tree.lines().find(|line| line.contains(kind) && line.contains(name));
        ensure!(line.is_some(), "describe shows no {expected}:\n{tree}");
    }
    let config = clusterctl.run(&management, &["get", "kubeconfig", NAME]).await?;
    let workload = workdir.path().join("workload.kubeconfig");
    std::fs::write(&workload, config)?;
    let nodes = kubectl.run(&workload, &["get", "nodes", "--no-headers"]).await?;
    let ready = nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count();
    ensure!((nodes.lines().count(), ready) == (2, 2), "two nodes should be ready:\n{nodes}");
    let folder = workdir.folder("moved")?;
    clusterctl.run(&management, &["move", "--to-directory", folder.to_str().context("path")?]).await?;
    let files = std::fs::read_dir(&folder)?.count();
    ensure!(files > 10, "move --to-directory wrote only {files} files");
    lap.end("clusterctl describes it, gets its kubeconfig and saves it");

    server.stop()?;
    ensure_no_warnings([server.logged_warnings()])?;
    workdir.passed();
    Ok(())
}
