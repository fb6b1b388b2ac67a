//! `cargo xtask kubectl-workload`: a simulated workload cluster, used with kubectl.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::bed::cluster::{Cluster, examples};
use crate::bed::ports::free_port;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir, capstan, wait};
use crate::peers::Cache;
use crate::text::Lap;

/// Two replicas with a disruption budget that keeps one of them.
const WORKLOAD: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'example.org/web:v1'}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: web}}
";

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("kubectl-workload")?;
    let tool = Tool::new(Cache::locate()?.built("kubectl")?, workdir.folder("home")?);
    let mut lap = Lap::start();
    let port = format!("--simulator-port={}", free_port()?);
    let arguments = ["--simulator", "--simulator-instant", &port];
    let mut server =
        Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &arguments).await?;
    let api = server.api()?;
    let cluster = Cluster::prepare(&api, "workload", examples(&["cni.yaml", "sim-cluster.yaml"])?).await?;
    cluster.create().await?;
    cluster.scale(1, 2).await?;
    cluster.wait_available(1, 2, &mut || server.check()).await?;
    let config = workdir.path().join("workload.kubeconfig");
    cluster.workload(&config).await?;
    lap.end("1+2 available");

    let kubectl = async |arguments: &[&str]| tool.run(&config, arguments).await;
    let nodes = kubectl(&["get", "nodes", "--no-headers"]).await?;
    let ready = nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count();
    ensure!(ready == 3, "expected three ready nodes:\n{nodes}");
    kubectl(&["wait", "pods", "--all", "-A", "--for=condition=Ready", "--timeout=60s"]).await?;
    let pods = kubectl(&["get", "pods", "-A", "--no-headers"]).await?;
    for part in
        ["etcd-", "kube-apiserver-", "kube-controller-manager-", "kube-scheduler-", "kube-proxy-", "coredns-"]
    {
        ensure!(pods.contains(part), "no Pod of {part}:\n{pods}");
    }
    lap.end("nodes and Pods are there");

    let manifest = workdir.path().join("workload.yaml");
    std::fs::write(&manifest, WORKLOAD)?;
    let manifest = manifest.to_str().context("path")?;
    kubectl(&["apply", "-f", manifest]).await?;
    kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).await?;
    let placed = "jsonpath={range .items[*]}{.spec.nodeName}{\"\\n\"}{end}";
    let on = async || -> Result<Vec<String>> {
        let text = kubectl(&["get", "pods", "-l", "app=web", "-o", placed]).await?;
        Ok(text.lines().map(ToOwned::to_owned).collect())
    };
    let target = on().await?.into_iter().next().context("no Pod of the Deployment is placed")?;
    let target = target.as_str();
    lap.end("a Deployment runs");

    kubectl(&["cordon", target]).await?;
    let cordoned = kubectl(&["get", "node", target, "--no-headers"]).await?;
    ensure!(cordoned.contains("SchedulingDisabled"), "not cordoned: {cordoned}");
    let drain = ["drain", target, "--ignore-daemonsets", "--delete-emptydir-data"];
    let refused = tool.refused(&config, &[&drain[..], &["--timeout=3s"]].concat()).await?;
    ensure!(
        refused.contains("disruption budget"),
        "drain failed for another reason than the budget:\n{refused}"
    );
    ensure!(on().await?.iter().any(|node| node == target), "a Pod was evicted despite the budget");
    kubectl(&["patch", "pdb", "web", "--type=merge", "-p", r#"{"spec":{"minAvailable":1}}"#]).await?;
    kubectl(&[&drain[..], &["--timeout=60s"]].concat()).await?;
    wait::until("both Pods run elsewhere", Duration::from_secs(60), || async {
        let nodes = on().await?;
        Ok((nodes.len() == 2 && nodes.iter().all(|node| node != target && !node.is_empty())).then_some(()))
    })
    .await?;
    kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).await?;
    lap.end("cordoned and drained, the budget kept");

    kubectl(&["uncordon", target]).await?;
    kubectl(&["scale", "deployment/web", "--replicas=4"]).await?;
    kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).await?;
    ensure!(on().await?.iter().any(|node| node == target), "{target} is back, but gets no Pods");
    kubectl(&["delete", "-f", manifest, "--timeout=60s"]).await?;
    kubectl(&["wait", "pods", "-l", "app=web", "--for=delete", "--timeout=60s"]).await?;
    lap.end("uncordoned, scaled, deleted");
    server.stop()?;
    workdir.passed();
    Ok(())
}
