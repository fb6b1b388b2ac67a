//! The lifecycle of the example cluster, step by step.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;

use crate::bed::tool::Tool;
use crate::bed::wait::until;
use crate::node_image::Release;
use crate::text::{human_bytes, human_duration};

/// The cluster of the examples.
pub(super) const NAME: &str = "real";
const WEB: &str = include_str!("web.yaml");
/// Timeout of a step, for a busy machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);

/// Command line programs.
pub struct Tools {
    pub kubectl: Tool,
    pub clusterctl: Tool,
    pub etcdctl: PathBuf,
}

/// The cluster under test.
pub struct TestCluster {
    tools: Tools,
    management: PathBuf,
    workload: PathBuf,
    folder: PathBuf,
    state: PathBuf,
    since: Instant,
    /// When the manifest was applied, by the clock of the API server.
    pub(super) applied: Timestamp,
}

struct Pod {
    name: String,
    uid: String,
    address: String,
    node: String,
    restarts: u64,
    ready: bool,
}

impl TestCluster {
    pub fn new(tools: Tools, management: PathBuf, folder: PathBuf, state: PathBuf) -> Self {
        let workload = folder.join("workload.kubeconfig");
        Self { tools, management, workload, folder, state, since: Instant::now(), applied: Timestamp::now() }
    }

    pub(super) async fn plane(&self, arguments: &[&str]) -> Result<String> {
        self.tools.kubectl.run(&self.management, arguments).await
    }

    pub(super) async fn cluster(&self, arguments: &[&str]) -> Result<String> {
        self.tools.kubectl.run(&self.workload, arguments).await
    }

    /// Objects of the management cluster.
    pub(super) async fn of_plane(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        self.listed(&self.management, arguments).await
    }

    async fn listed(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<Vec<Value>> {
        let text = self.tools.kubectl.run(kubeconfig, &[arguments, &["-o", "json"]].concat()).await?;
        let list: Value = serde_json::from_str(&text)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Objects of the workload cluster.
    pub(super) async fn of_cluster(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        self.listed(&self.workload, arguments).await
    }

    fn log_step(&self, what: &str) {
        println!("  {what}: {} after the manifest", human_duration(self.since.elapsed()));
    }

    /// Applies the manifest and waits until its nodes are ready: `control_planes` and one worker.
    pub async fn begin(&mut self, release: Release, control_planes: usize) -> Result<()> {
        let examples = crate::cargo::root().join("examples");
        let manifest = std::fs::read_to_string(examples.join("kvm-cluster.yaml"))?;
        let current = Release::Current.version();
        ensure!(
            manifest.contains(&current),
            "the example's version differs from the node image's, {current}"
        );
        let file = self.folder.join("cluster.yaml");
        // The first `replicas` is the control plane's.
        let manifest = manifest.replacen("replicas: 1", &format!("replicas: {control_planes}"), 1);
        std::fs::write(&file, manifest.replace(&current, &release.version()))?;
        (self.since, self.applied) = (Instant::now(), Timestamp::now());
        for path in [examples.join("kvm-cni.yaml"), file] {
            self.plane(&["apply", "-f", path.to_str().context("path")?]).await?;
        }
        let config = until("the kubeconfig of the cluster", TIMEOUT, || async {
            self.tools.clusterctl.run(&self.management, &["get", "kubeconfig", NAME]).await.map(Some)
        });
        std::fs::write(&self.workload, config.await?)?;
        self.nodes_ready(control_planes + 1).await?;
        self.log_step(&format!("{control_planes} + 1 nodes ready"));
        self.system_healthy().await?;
        self.log_step("kube-system healthy");
        self.timeline().await?;
        println!("{}", self.cluster(&["get", "nodes", "-o", "wide"]).await?.trim_end());
        Ok(())
    }

    /// Waits until every Pod of kube-system is ready.
    pub(super) async fn system_healthy(&self) -> Result<()> {
        until("all Pods of kube-system ready", TIMEOUT, || async {
            let pods = self.of_cluster(&["-n", "kube-system", "get", "pods"]).await?;
            let late: Vec<&str> = pods
                .iter()
                .filter(|pod| !is_ready(pod))
                .filter_map(|pod| pod["metadata"]["name"].as_str())
                .collect();
            ensure!(late.is_empty() && !pods.is_empty(), "not ready: {}", late.join(", "));
            Ok(Some(()))
        })
        .await
    }

    /// Waits for that many nodes, all ready.
    pub(super) async fn nodes_ready(&self, wanted: usize) -> Result<()> {
        until(&format!("{wanted} nodes that are ready"), TIMEOUT, || async {
            let nodes = self.of_cluster(&["get", "nodes"]).await?;
            let ready = nodes.iter().filter(|node| is_ready(node)).count();
            ensure!(nodes.len() == wanted && ready == wanted, "{ready} of {} nodes are ready", nodes.len());
            Ok(Some(()))
        })
        .await
    }

    /// Checks that two Pods on two nodes reach each other, and that a Service and its DNS name reach both.
    pub async fn pods(&self) -> Result<()> {
        let file = self.folder.join("web.yaml");
        std::fs::write(&file, WEB)?;
        self.cluster(&["apply", "-f", file.to_str().context("path")?]).await?;
        let pods = until("two Pods of the Deployment ready", TIMEOUT, || async {
            let pods = self.web().await?;
            let ready = pods.iter().filter(|pod| pod.ready).count();
            ensure!((ready, pods.len()) == (2, 2), "{ready} of {} Pods are ready", pods.len());
            Ok(Some(pods))
        });
        let pods = pods.await?;
        self.log_step("Deployment of 2 Pods running");
        let [one, other] = pods.as_slice() else {
            anyhow::bail!("{} Pods instead of two", pods.len());
        };
        ensure!(one.node != other.node, "both Pods are on {}", one.node);
        for (from, to) in [(one, other), (other, one)] {
            // Routes to Pods of other nodes take a few seconds.
            until(&format!("a response from {} to {}", to.name, from.name), TIMEOUT, || async {
                let answer = self.get(from, &format!("http://{}:8080", to.address)).await?;
                let expected = format!("{} answers {}", to.name, from.address);
                ensure!(answer.trim() == expected, "{answer:?} instead of {expected:?}");
                Ok(Some(()))
            })
            .await?;
        }
        self.log_step("Pods on two nodes reach each other by their own addresses");
        let answered = RefCell::new(BTreeSet::new());
        until("both Pods behind the Service", TIMEOUT, || async {
            let answer = self.get(one, "http://web.default.svc.cluster.local").await?;
            answered.borrow_mut().extend(answer.split_whitespace().next().map(str::to_owned));
            Ok((answered.borrow().len() == 2).then_some(()))
        })
        .await?;
        self.log_step("the Service reaches both, by its DNS name");
        Ok(())
    }

    async fn web(&self) -> Result<Vec<Pod>> {
        let pods = self.of_cluster(&["get", "pods", "-l", "app=web"]).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pod = |pod: &Value| Pod {
            name: text(&pod["metadata"]["name"]),
            uid: text(&pod["metadata"]["uid"]),
            address: text(&pod["status"]["podIP"]),
            node: text(&pod["spec"]["nodeName"]),
            restarts: pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or(0),
            ready: is_ready(pod),
        };
        Ok(pods.iter().map(pod).collect())
    }

    async fn get(&self, from: &Pod, url: &str) -> Result<String> {
        self.cluster(&["exec", &from.name, "--", "/web", "get", url]).await
    }

    /// Adds a second worker and removes it.
    pub async fn scale_workers(&self) -> Result<()> {
        let start = Instant::now();
        self.plane(&["scale", "machinedeployment/real-workers", "--replicas=2"]).await?;
        self.nodes_ready(3).await?;
        println!("  2 workers: {}", human_duration(start.elapsed()));
        let start = Instant::now();
        self.plane(&["scale", "machinedeployment/real-workers", "--replicas=1"]).await?;
        self.nodes_ready(2).await?;
        self.machines_there(2).await?;
        println!("  1 worker again: {}", human_duration(start.elapsed()));
        Ok(())
    }

    /// Waits for that many machines, in the API and on the host.
    async fn machines_there(&self, wanted: usize) -> Result<()> {
        until(&format!("{wanted} machines"), TIMEOUT, || async {
            let machines = self.of_plane(&["get", "kvmmachines"]).await?.len();
            let folders = std::fs::read_dir(self.state.join("machines"))?.count();
            ensure!((machines, folders) == (wanted, wanted), "{machines} KVMMachines, {folders} folders");
            Ok(Some(()))
        })
        .await
    }

    /// Scales to three control plane machines and waits for as many etcd members.
    pub async fn three_control_planes(&self) -> Result<()> {
        let start = Instant::now();
        self.plane(&["scale", "kubeadmcontrolplane/real", "--replicas=3"]).await?;
        self.nodes_ready(4).await?;
        println!("  3 + 1 nodes ready: {} after 1 + 1", human_duration(start.elapsed()));
        println!("{}", self.members(3).await?.trim_end());
        Ok(())
    }

    /// Names and folders of the running control plane machines.
    async fn control_planes(&self) -> Result<Vec<(String, PathBuf)>> {
        let machines = self.of_plane(&["get", "machines", "-l", "cluster.x-k8s.io/control-plane"]);
        let name = |machine: &Value| {
            let name = machine["metadata"]["name"].as_str()?.to_owned();
            let id = machine["spec"]["providerID"].as_str()?.strip_prefix("kvm:///")?.to_owned();
            Some((name, self.state.join("machines").join(id)))
        };
        Ok(machines.await?.iter().filter_map(name).collect())
    }

    /// Prints the state of the plane and the consoles of the machines after a failure.
    pub async fn explain(&self) {
        let kinds = "cluster,kubeadmcontrolplane,machinedeployment,machine,kvmmachine";
        for (what, arguments) in
            [("plane", vec!["get", kinds]), ("plane", vec!["get", "machine", "-o", "yaml"])]
        {
            let said = self.plane(&arguments).await.unwrap_or_else(|error| format!("{error:#}"));
            eprintln!("--- {what}: kubectl {}\n{said}", arguments.join(" "));
        }
        let nodes = self.cluster(&["get", "nodes,pods", "-A", "-o", "wide", "--request-timeout=5s"]).await;
        eprintln!("--- cluster\n{}", nodes.unwrap_or_else(|error| format!("{error:#}")));
        for entry in std::fs::read_dir(self.state.join("machines")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path().join("console.log")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(25)..].join("\n");
            eprintln!("--- console of {}\n{end}", entry.file_name().to_string_lossy());
        }
    }

    /// Waits for that many voting etcd members. Returns the output of etcdctl.
    pub(super) async fn members(&self, wanted: usize) -> Result<String> {
        until(&format!("{wanted} members of etcd"), TIMEOUT, || async {
            let mut last = String::new();
            for (_, folder) in self.control_planes().await? {
                let Ok(record) = std::fs::read_to_string(folder.join("machine.json")) else { continue };
                let record: Value = serde_json::from_str(&record)?;
                let pki = folder.join("upper/etc/kubernetes/pki/etcd");
                let output = Command::new(&self.tools.etcdctl)
                    .args(["member", "list", "--write-out=table", "--command-timeout=3s"])
                    .arg(format!(
                        "--endpoints=https://{}:2379",
                        record["address"].as_str().unwrap_or_default()
                    ))
                    .arg(format!("--cacert={}", pki.join("ca.crt").display()))
                    .arg(format!("--cert={}", pki.join("healthcheck-client.crt").display()))
                    .arg(format!("--key={}", pki.join("healthcheck-client.key").display()))
                    .output()?;
                let table = String::from_utf8_lossy(&output.stdout).into_owned();
                let started = table.lines().filter(|line| line.contains("| started |")).count();
                let learners = table.lines().filter(|line| line.contains("true")).count();
                if output.status.success() && (started, learners) == (wanted, 0) {
                    return Ok(Some(table));
                }
                last = format!("{table}{}", String::from_utf8_lossy(&output.stderr));
            }
            anyhow::bail!("{last}")
        })
        .await
    }

    /// Kills a control plane machine. It must be replaced, while the API answers and the Pods keep running.
    pub async fn lose_one(&self) -> Result<()> {
        let before = self.control_planes().await?;
        let pods = self.web().await?;
        let (lost, folder) = before.first().context("no control plane machine")?.clone();
        let pid = std::fs::read_to_string(folder.join("pid"))?;
        let pid = pid.split_whitespace().next().context("a process")?;
        let start = Instant::now();
        ensure!(Command::new("kill").args(["-9", pid]).status()?.success(), "kill -9 {pid} failed");
        println!("  killed {lost}");
        let (asked, failed) = (Cell::new(0_usize), Cell::new(0_usize));
        until("another machine in its place", TIMEOUT, || async {
            let name = format!("still-there-{}", asked.replace(asked.get() + 1));
            let written = self.cluster(&["create", "configmap", &name, "--request-timeout=5s"]).await;
            failed.set(failed.get() + usize::from(written.is_err()));
            let now = self.control_planes().await?;
            let nodes = self.of_cluster(&["get", "nodes"]).await?;
            let ready = nodes.iter().filter(|node| is_ready(node)).count();
            let replaced = now.len() == before.len() && now.iter().all(|(name, _)| *name != lost);
            ensure!(replaced && (nodes.len(), ready) == (4, 4), "{ready} of {} nodes ready", nodes.len());
            Ok(Some(()))
        })
        .await?;
        let (asked, failed) = (asked.get(), failed.get());
        println!("  replaced: {}; {failed} of {asked} writes failed", human_duration(start.elapsed()));
        ensure!(
            failed * 10 <= asked,
            "{failed} of {asked} writes failed while two of three members were there"
        );
        println!("{}", self.members(3).await?.trim_end());
        self.machines_there(4).await?;
        let now = self.web().await?;
        let elsewhere: Vec<&Pod> = pods.iter().filter(|pod| pod.node != lost).collect();
        for pod in &elsewhere {
            let same = |it: &&Pod| it.uid == pod.uid && it.restarts == pod.restarts;
            ensure!(now.iter().any(|it| same(&it)), "{} on {} did not keep running", pod.name, pod.node);
        }
        ensure!(!elsewhere.is_empty(), "every Pod of the Deployment was on {lost}");
        println!("  {} of {} Pods were on other nodes and kept running", elsewhere.len(), pods.len());
        Ok(())
    }

    /// Prints the memory of nodes and plane.
    pub fn memory(&self, plane: u64) -> Result<()> {
        for entry in std::fs::read_dir(self.state.join("machines"))?.flatten() {
            let record: Value =
                serde_json::from_str(&std::fs::read_to_string(entry.path().join("machine.json"))?)?;
            let groups = record["cgroups"].as_array().cloned().unwrap_or_default();
            let read = |group: &Value| {
                let folder = Path::new(group.as_str()?);
                let v1 = std::fs::read_to_string(folder.join("memory.stat")).ok()?;
                let line =
                    v1.lines().find(|line| line.starts_with("total_rss ") || line.starts_with("anon "))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            };
            let used = groups.iter().find_map(read).unwrap_or_default();
            println!("  memory of {}: {}", record["name"].as_str().unwrap_or_default(), human_bytes(used));
        }
        println!("  memory of the plane: {}", human_bytes(plane));
        Ok(())
    }

    /// Deletes the cluster and waits until its machines and its network are gone.
    pub async fn end(&self) -> Result<()> {
        let start = Instant::now();
        self.plane(&["delete", "cluster", NAME, "--wait=false"]).await?;
        until("the Cluster to be gone", TIMEOUT, || async {
            let left = self.of_plane(&["get", "clusters"]).await?;
            Ok(left.is_empty().then_some(()))
        })
        .await?;
        self.machines_there(0).await?;
        until("the network to be gone", TIMEOUT, || async {
            Ok((std::fs::read_dir(self.state.join("networks"))?.count() == 0).then_some(()))
        })
        .await?;
        println!("  deleted: {}", human_duration(start.elapsed()));
        Ok(())
    }
}

/// Whether the condition Ready is true.
pub(super) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}
