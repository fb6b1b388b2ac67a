//! `cargo xtask clusterctl`: clusterctl against our server while it holds upstream's objects.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;
use tokio::process::Command;

use super::fleet::{Fleet, NAMESPACE};
use crate::api::Api;
use crate::bed::{Flavour, Managers, Server, Workdir};
use crate::peers::Cache;

const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub struct Options {
    /// Which server
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let cache = Cache::locate()?;
    let (clusterctl, kubectl) = (cache.built("clusterctl")?, cache.built("kubectl")?);
    let mut workdir = Workdir::new("clusterctl")?;
    let capstan = options.capstan.as_deref();
    let mut source = Server::start(options.server, &workdir.folder("source")?, capstan).await?;
    let mut managers = Managers::start(&workdir.folder("managers")?, &source.kubeconfig).await?;
    let api = source.api()?;
    let fleet = Fleet::prepare(&api, 1).await?;
    fleet.create().await?;
    let mut healthy = || source.check().and_then(|()| managers.check());
    fleet.wait_available(1, 1, &mut healthy).await?;
    println!("  one cluster is available on {}", options.server.name());

    let tool = Tool { program: clusterctl, home: workdir.folder("home")? };
    let from = source.kubeconfig.as_path();
    let tree = tool.run(from, &["describe", "cluster", "fleet-1", "--show-conditions=all"]).await?;
    for expected in [
        "Cluster fleet/fleet-1",
        "DevCluster fleet/",
        "KubeadmControlPlane fleet/",
        "MachineDeployment fleet/",
        "NodeHealthy",
    ] {
        ensure!(tree.contains(expected), "describe shows no {expected}:\n{tree}");
    }
    println!("  describe cluster: {} lines", tree.lines().count());

    let config = tool.run(from, &["get", "kubeconfig", "fleet-1"]).await?;
    let workload = workdir.path().join("workload.kubeconfig");
    std::fs::write(&workload, config)?;
    let kubectl = Tool { program: kubectl, home: workdir.folder("home")? };
    let nodes = kubectl.plain(&workload, &["get", "nodes", "-o", "name"]).await?;
    ensure!(nodes.lines().count() == 2, "the workload cluster should have two nodes:\n{nodes}");
    println!("  get kubeconfig: its cluster has two nodes");

    let folder = workdir.folder("moved")?;
    let folder = folder.to_str().context("path")?;
    tool.run(from, &["move", "--to-directory", folder]).await?;
    let files = std::fs::read_dir(folder)?.count();
    ensure!(files > 10, "move --to-directory wrote only {files} files");
    println!("  move --to-directory: {files} objects");

    let target = Server::start(options.server, &workdir.folder("target")?, capstan).await?;
    let target_api = target.api()?;
    managers.manifests.create_kinds(&target_api).await?;
    let before = inventory(&api).await?;
    let to = target.kubeconfig.to_str().context("path")?;
    tool.run(from, &["move", "--to-kubeconfig", to]).await?;
    let (left, arrived) = (inventory(&api).await?, inventory(&target_api).await?);
    ensure!(left.is_empty(), "move left behind: {left:?}");
    ensure!(arrived == before, "moved {before:?}, arrived {arrived:?}");
    println!("  move --to-kubeconfig: {} objects, none left behind", arrived.len());
    workdir.passed();
    Ok(())
}

/// Cluster API objects of the namespace, by kind and name.
async fn inventory(api: &Api) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (group, plurals) in [
        (
            "cluster.x-k8s.io",
            &["clusters", "clusterclasses", "machines", "machinesets", "machinedeployments"][..],
        ),
        ("controlplane.cluster.x-k8s.io", &["kubeadmcontrolplanes", "kubeadmcontrolplanetemplates"]),
        ("bootstrap.cluster.x-k8s.io", &["kubeadmconfigs", "kubeadmconfigtemplates"]),
        ("infrastructure.cluster.x-k8s.io", &["devclusters", "devmachines", "devmachinetemplates"]),
    ] {
        for plural in plurals {
            let path = format!("/apis/{group}/v1beta2/namespaces/{NAMESPACE}/{plural}");
            let list = api.get(&path).await?.success()?;
            for item in list["items"].as_array().into_iter().flatten() {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                ensure!(
                    item["metadata"]["deletionTimestamp"] == Value::Null,
                    "{plural} {name} is being deleted"
                );
                all.push(format!("{plural}/{name}"));
            }
        }
    }
    Ok(all)
}

/// A command line program with a home of its own.
struct Tool {
    program: PathBuf,
    home: PathBuf,
}

impl Tool {
    /// In the namespace of the fleet.
    async fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        self.plain(kubeconfig, &[arguments, &["--namespace", NAMESPACE]].concat()).await
    }

    async fn plain(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        let shown = format!("{} {}", self.program.display(), arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("HOME", &self.home)
            // No question to the internet about a newer release.
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output =
            tokio::time::timeout(LIMIT, output).await.with_context(|| format!("{shown}: no end"))??;
        if !output.status.success() {
            bail!(
                "{shown}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}
