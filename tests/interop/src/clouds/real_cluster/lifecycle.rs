//! The life of the examples' cluster, step by step.

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
/// How long a step may take on a machine that is busy with other things.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// Programs that a user would use.
pub struct Tools {
    pub kubectl: Tool,
    pub clusterctl: Tool,
    pub etcdctl: PathBuf,
}

/// A cluster that lives.
pub struct Life {
    tools: Tools,
    management: PathBuf,
    workload: PathBuf,
    folder: PathBuf,
    state: PathBuf,
    since: Instant,
    /// When the manifest was applied, by the clock that objects are stamped with.
    pub(super) applied: Timestamp,
}

/// A Pod of the Deployment.
struct Pod {
    name: String,
    uid: String,
    address: String,
    node: String,
    restarts: u64,
    ready: bool,
}

impl Life {
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

    /// Objects of the plane.
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

    fn told(&self, what: &str) {
        println!("  {what}: {} after the manifest", human_duration(self.since.elapsed()));
    }

    /// One manifest, and its nodes that are ready: so many of the control plane, and a worker.
    pub async fn begin(&mut self, release: Release, control_planes: usize) -> Result<()> {
        let examples = crate::cargo::root().join("examples");
        let manifest = std::fs::read_to_string(examples.join("kvm-cluster.yaml"))?;
        let current = Release::Current.version();
        ensure!(
            manifest.contains(&current),
            "the example has another release than the node image, {current}"
        );
        let file = self.folder.join("cluster.yaml");
        // The first count is the control plane's.
        let manifest = manifest.replacen("replicas: 1", &format!("replicas: {control_planes}"), 1);
        std::fs::write(&file, manifest.replace(&current, &release.version()))?;
        (self.since, self.applied) = (Instant::now(), Timestamp::now());
        for path in [examples.join("kvm-cni.yaml"), file] {
            self.plane(&["apply", "-f", path.to_str().context("path")?]).await?;
        }
        let config = until("the kubeconfig of the cluster", PATIENCE, || async {
            self.tools.clusterctl.run(&self.management, &["get", "kubeconfig", NAME]).await.map(Some)
        });
        std::fs::write(&self.workload, config.await?)?;
        self.nodes_ready(control_planes + 1).await?;
        self.told(&format!("{control_planes} + 1 nodes ready"));
        self.system_healthy().await?;
        self.told("kube-system healthy");
        self.timeline().await?;
        println!("{}", self.cluster(&["get", "nodes", "-o", "wide"]).await?.trim_end());
        Ok(())
    }

    /// Every Pod of kube-system is ready.
    pub(super) async fn system_healthy(&self) -> Result<()> {
        until("all Pods of kube-system ready", PATIENCE, || async {
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

    /// So many nodes, all of them ready.
    pub(super) async fn nodes_ready(&self, wanted: usize) -> Result<()> {
        until(&format!("{wanted} nodes that are ready"), PATIENCE, || async {
            let nodes = self.of_cluster(&["get", "nodes"]).await?;
            let ready = nodes.iter().filter(|node| is_ready(node)).count();
            ensure!(nodes.len() == wanted && ready == wanted, "{ready} of {} nodes are ready", nodes.len());
            Ok(Some(()))
        })
        .await
    }

    /// Two Pods on two nodes reach each other and are reached by a Service and its name.
    pub async fn pods(&self) -> Result<()> {
        let file = self.folder.join("web.yaml");
        std::fs::write(&file, WEB)?;
        self.cluster(&["apply", "-f", file.to_str().context("path")?]).await?;
        let pods = until("two Pods of the Deployment ready", PATIENCE, || async {
            let pods = self.web().await?;
            let ready = pods.iter().filter(|pod| pod.ready).count();
            ensure!((ready, pods.len()) == (2, 2), "{ready} of {} Pods are ready", pods.len());
            Ok(Some(pods))
        });
        let pods = pods.await?;
        self.told("Deployment of 2 Pods running");
        let [one, other] = pods.as_slice() else {
            anyhow::bail!("{} Pods instead of two", pods.len());
        };
        ensure!(one.node != other.node, "both Pods are on {}", one.node);
        for (from, to) in [(one, other), (other, one)] {
            // A node learns of another's Pods in a few seconds.
            until(&format!("an answer of {} to {}", to.name, from.name), PATIENCE, || async {
                let answer = self.get(from, &format!("http://{}:8080", to.address)).await?;
                let expected = format!("{} answers {}", to.name, from.address);
                ensure!(answer.trim() == expected, "{answer:?} instead of {expected:?}");
                Ok(Some(()))
            })
            .await?;
        }
        self.told("Pods on two nodes reach each other with their own addresses");
        let answered = RefCell::new(BTreeSet::new());
        until("both Pods behind the Service", PATIENCE, || async {
            let answer = self.get(one, "http://web.default.svc.cluster.local").await?;
            answered.borrow_mut().extend(answer.split_whitespace().next().map(str::to_owned));
            Ok((answered.borrow().len() == 2).then_some(()))
        })
        .await?;
        self.told("the Service leads to both, found by its name");
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

    /// A second worker comes and goes.
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

    /// So many machines, in the plane and on the host.
    async fn machines_there(&self, wanted: usize) -> Result<()> {
        until(&format!("{wanted} machines"), PATIENCE, || async {
            let machines = self.of_plane(&["get", "kvmmachines"]).await?.len();
            let folders = std::fs::read_dir(self.state.join("machines"))?.count();
            ensure!((machines, folders) == (wanted, wanted), "{machines} KVMMachines, {folders} folders");
            Ok(Some(()))
        })
        .await
    }

    /// Three control plane machines with as many members of etcd.
    pub async fn three_control_planes(&self) -> Result<()> {
        let start = Instant::now();
        self.plane(&["scale", "kubeadmcontrolplane/real", "--replicas=3"]).await?;
        self.nodes_ready(4).await?;
        println!("  3 + 1 nodes ready: {} after 1 + 1", human_duration(start.elapsed()));
        println!("{}", self.members(3).await?.trim_end());
        Ok(())
    }

    /// Folders of the machines of the control plane that run.
    async fn control_planes(&self) -> Result<Vec<(String, PathBuf)>> {
        let machines = self.of_plane(&["get", "machines", "-l", "cluster.x-k8s.io/control-plane"]);
        let name = |machine: &Value| {
            let name = machine["metadata"]["name"].as_str()?.to_owned();
            let id = machine["spec"]["providerID"].as_str()?.strip_prefix("kvm:///")?.to_owned();
            Some((name, self.state.join("machines").join(id)))
        };
        Ok(machines.await?.iter().filter_map(name).collect())
    }

    /// Says what the plane and the machines know when something did not come true.
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

    /// What etcdctl says of the members, once there are so many and all of them vote.
    pub(super) async fn members(&self, wanted: usize) -> Result<String> {
        until(&format!("{wanted} members of etcd"), PATIENCE, || async {
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

    /// A machine of the control plane dies: it is replaced, and meanwhile the API answers and the Pods run on.
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
        until("another machine in its place", PATIENCE, || async {
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
            ensure!(now.iter().any(|it| same(&it)), "{} on {} did not run on", pod.name, pod.node);
        }
        ensure!(!elsewhere.is_empty(), "every Pod of the Deployment was on {lost}");
        println!("  {} of {} Pods were on other nodes and ran on", elsewhere.len(), pods.len());
        Ok(())
    }

    /// What nodes and plane use.
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

    /// The cluster is deleted, and so are its machines and its network.
    pub async fn end(&self) -> Result<()> {
        let start = Instant::now();
        self.plane(&["delete", "cluster", NAME, "--wait=false"]).await?;
        until("the Cluster to be gone", PATIENCE, || async {
            let left = self.of_plane(&["get", "clusters"]).await?;
            Ok(left.is_empty().then_some(()))
        })
        .await?;
        self.machines_there(0).await?;
        until("the network to be gone", PATIENCE, || async {
            Ok((std::fs::read_dir(self.state.join("networks"))?.count() == 0).then_some(()))
        })
        .await?;
        println!("  deleted: {}", human_duration(start.elapsed()));
        Ok(())
    }
}

/// The condition Ready is true.
pub(super) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}
