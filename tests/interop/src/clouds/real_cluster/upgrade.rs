//! Upgrades a cluster while an external client sends requests to its Service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::lifecycle::{NAME, TIMEOUT, TestCluster, is_ready};
use crate::bed::wait::until;
use crate::node_image::Release;
use crate::text::human_duration;

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a request, for a busy machine.
const LIMIT: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n";

/// An external client: its targets and its results.
#[derive(Debug, Default)]
struct Client {
    /// Nodes that are ready and not being drained: what a load balancer in front of the cluster would use.
    nodes: Vec<String>,
    asked: usize,
    failed: Vec<String>,
}

type SharedClient = Arc<Mutex<Client>>;

fn locked(client: &SharedClient) -> MutexGuard<'_, Client> {
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestCluster {
    /// Upgrades the control plane, then the workers. Every request must be answered.
    pub async fn upgrade(&self) -> Result<()> {
        let version = Release::Current.version();
        let service: Value =
            serde_json::from_str(&self.cluster(&["get", "service", "web", "-o", "json"]).await?)?;
        let port =
            service["spec"]["ports"][0]["nodePort"].as_u64().context("the Service has no port on nodes")?;
        let client = SharedClient::default();
        self.update_nodes(&client).await?;
        // The task is aborted when the set is dropped.
        let mut asking = JoinSet::new();
        asking.spawn(ask(client.clone(), port));

        let start = Instant::now();
        let patch = format!(r#"{{"spec":{{"version":"{version}"}}}}"#);
        self.plane(&["patch", "kubeadmcontrolplane", NAME, "--type=merge", "-p", &patch]).await?;
        self.nodes_are(&version, true, &client).await?;
        println!("  control plane of {version}: {}", human_duration(start.elapsed()));

        let start = Instant::now();
        let patch = format!(r#"{{"spec":{{"template":{{"spec":{{"version":"{version}"}}}}}}}}"#);
        self.plane(&["patch", "machinedeployment", "real-workers", "--type=merge", "-p", &patch]).await?;
        self.nodes_are(&version, false, &client).await?;
        println!("  workers of {version}: {}", human_duration(start.elapsed()));
        asking.shutdown().await;

        self.parts_are(&version).await?;
        println!("{}", self.members(1).await?.trim_end());
        println!("{}", self.cluster(&["get", "nodes", "-o", "wide"]).await?.trim_end());
        let client = locked(&client);
        let (asked, failed) = (client.asked, client.failed.len());
        println!("  {failed} of {asked} requests failed while every machine was replaced");
        ensure!(asked > 0, "the client sent no request");
        ensure!(failed == 0, "requests failed:\n{}", client.failed.join("\n"));
        Ok(())
    }

    /// Updates the client's list of nodes.
    async fn update_nodes(&self, client: &SharedClient) -> Result<Vec<Value>> {
        let nodes = self.of_cluster(&["get", "nodes", "--request-timeout=5s"]).await?;
        let open = |node: &&Value| is_ready(node) && node["spec"]["unschedulable"] != true;
        let address = |node: &Value| {
            let addresses = node["status"]["addresses"].as_array()?;
            let internal = addresses.iter().find(|it| it["type"] == "InternalIP")?;
            internal["address"].as_str().map(str::to_owned)
        };
        locked(client).nodes = nodes.iter().filter(open).filter_map(address).collect();
        Ok(nodes)
    }

    /// Waits until one control plane node, or both nodes, run a version and no other node is left.
    async fn nodes_are(&self, version: &str, control_plane: bool, client: &SharedClient) -> Result<()> {
        let role = "node-role.kubernetes.io/control-plane";
        until(&format!("nodes of {version}"), TIMEOUT, || async {
            let nodes = self.update_nodes(client).await?;
            let of_role = |node: &&Value| node["metadata"]["labels"].get(role).is_some();
            let wanted: Vec<&Value> = nodes.iter().filter(|node| !control_plane || of_role(node)).collect();
            let done =
                |node: &&&Value| is_ready(node) && node["status"]["nodeInfo"]["kubeletVersion"] == version;
            let (is, all) = (wanted.iter().filter(done).count(), wanted.len());
            let expected = if control_plane { 1 } else { 2 };
            ensure!((is, all) == (expected, expected), "{is} of {all} nodes are of {version} and ready");
            Ok(Some(()))
        })
        .await
    }

    /// Checks the version of what is not part of a machine: API server, kube-proxy and CoreDNS.
    async fn parts_are(&self, version: &str) -> Result<()> {
        let said: Value = serde_json::from_str(&self.cluster(&["version", "-o", "json"]).await?)?;
        ensure!(
            said["serverVersion"]["gitVersion"] == version,
            "the API server is {}",
            said["serverVersion"]
        );
        let image = |text: &str| -> Result<String> {
            let object: Value = serde_json::from_str(text)?;
            let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
            Ok(image.as_str().unwrap_or_default().to_owned())
        };
        let system = |object: &'static str| ["-n", "kube-system", "get", object, "-o", "json"];
        let proxy = image(&self.cluster(&system("daemonset/kube-proxy")).await?)?;
        ensure!(proxy.ends_with(version), "kube-proxy is {proxy}");
        let dns = image(&self.cluster(&system("deployment/coredns")).await?)?;
        println!("  {proxy}, {dns}");
        self.system_healthy().await
    }
}

/// Sends requests to the nodes in turn. No retries.
async fn ask(client: SharedClient, port: u64) {
    for turn in 0_usize.. {
        let door = {
            let client = locked(&client);
            client.nodes.get(turn % client.nodes.len().max(1)).cloned()
        };
        if let Some(door) = door {
            let answer = tokio::time::timeout(LIMIT, request(&format!("{door}:{port}"))).await;
            let failed = match answer {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some(format!("no response within {LIMIT:?}")),
            };
            let mut client = locked(&client);
            client.asked += 1;
            let now = jiff::Timestamp::now();
            client.failed.extend(failed.map(|why| format!("{now} {door}: {why}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn request(door: &str) -> Result<()> {
    let mut stream = TcpStream::connect(door).await.context("connect")?;
    stream.write_all(REQUEST).await.context("ask")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.context("read the response")?;
    let answer = String::from_utf8_lossy(&answer);
    ensure!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains(" answers "),
        "unexpected response {answer:?}"
    );
    Ok(())
}
