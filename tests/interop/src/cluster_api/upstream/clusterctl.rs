//! clusterctl against our server while it holds upstream's objects.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::fleet::{Fleet, NAMESPACE};
use crate::api::Api;
use crate::bed::tool::Tool;
use crate::bed::{Flavour, Managers, Server, Workdir};
use crate::peers::Cache;

pub async fn run(flavour: Flavour, binary: &Path) -> Result<()> {
    let cache = Cache::locate()?;
    let (clusterctl, kubectl) = (cache.built("clusterctl")?, cache.built("kubectl")?);
    let mut workdir = Workdir::new("clusterctl")?;
    let capstan = Some(binary);
    let mut source = Server::start(flavour, &workdir.folder("source")?, capstan).await?;
    let mut managers = Managers::start(&workdir.folder("managers")?, &source.kubeconfig).await?;
    let api = source.api()?;
    let fleet = Fleet::prepare(&api, 1).await?;
    fleet.create().await?;
    let mut healthy = || source.check().and_then(|()| managers.check());
    fleet.wait_available(1, 1, &mut healthy).await?;
    println!("  one cluster is available on {}", flavour.name());

    let clusterctl = Tool::new(clusterctl, workdir.folder("home")?);
    let from = source.kubeconfig.as_path();
    // In the namespace of the fleet.
    let ctl = async |arguments: &[&str]| {
        clusterctl.run(from, &[arguments, &["--namespace", NAMESPACE]].concat()).await
    };
    let tree = ctl(&["describe", "cluster", "fleet-1", "--show-conditions=all"]).await?;
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

    let config = ctl(&["get", "kubeconfig", "fleet-1"]).await?;
    let workload = workdir.path().join("workload.kubeconfig");
    std::fs::write(&workload, config)?;
    let kubectl = Tool::new(kubectl, workdir.folder("home")?);
    let nodes = kubectl.run(&workload, &["get", "nodes", "-o", "name"]).await?;
    ensure!(nodes.lines().count() == 2, "the workload cluster should have two nodes:\n{nodes}");
    println!("  get kubeconfig: its cluster has two nodes");

    let folder = workdir.folder("moved")?;
    let folder = folder.to_str().context("path")?;
    ctl(&["move", "--to-directory", folder]).await?;
    let files = std::fs::read_dir(folder)?.count();
    ensure!(files > 10, "move --to-directory wrote only {files} files");
    println!("  move --to-directory: {files} objects");

    let target = Server::start(flavour, &workdir.folder("target")?, capstan).await?;
    let target_api = target.api()?;
    managers.manifests.create_kinds(&target_api).await?;
    let before = inventory(&api).await?;
    let to = target.kubeconfig.to_str().context("path")?;
    ctl(&["move", "--to-kubeconfig", to]).await?;
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
