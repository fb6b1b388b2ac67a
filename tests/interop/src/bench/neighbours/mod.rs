//! `cargo xtask bench neighbours`: how long a healthy cluster takes to become Available in a plane of its own, and beside
//! clusters whose API server accepts connections and says nothing.
//!
//! A silent cluster is one of the example's whose author has set `spec.controlPlaneEndpoint`: its kubeconfig leads there,
//! and the controllers of the Cluster, its control plane and its machine ask it again and again. Healthy clusters are
//! created one after another in another namespace of the same server.

mod silent;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::follow::{Follower, FollowerEvent};
use crate::api::Api;
use crate::bed::cluster::{examples, is_there};
use crate::bed::machine::Machine;
use crate::bed::process::usage_of;
use crate::bed::{Server, Workdir, capstan, ports::free_port, wait};
use crate::discovery::Discovery;
use crate::text::{human_duration, table};
use silent::Silence;

const HEALTHY: &str = "healthy";
const SILENT: &str = "silent";
const HEALTHY_CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/healthy/clusters";
const SILENT_CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/silent/clusters";
/// Concurrent requests that create silent clusters.
const AT_A_TIME: usize = 16;
/// What a silent cluster is made of: it gets no further than its first machine.
const OF_SILENT: [&str; 4] = ["Cluster", "SimCluster", "KubeadmControlPlane", "SimMachineTemplate"];

#[derive(Debug, Args)]
pub struct Options {
    /// Number of silent clusters
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    silent: usize,
    /// Healthy clusters whose median is taken, alone and beside silent ones
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Timeout in seconds, for a healthy cluster and for the creation of the silent ones
    #[arg(long, value_name = "SECONDS", default_value_t = 1_800)]
    timeout: u64,
    /// Our binary [default: a release build]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// From the first manifest of a cluster.
#[derive(Clone, Copy, Debug)]
struct Times {
    initialized: Duration,
    available: Duration,
}

pub async fn run(options: Options) -> Result<()> {
    let mut workdir = Workdir::new("neighbours")?;
    let binary = capstan::optimised(options.capstan.as_deref())?;
    let timeout = Duration::from_secs(options.timeout);
    let port = format!("--simulator-port={}", free_port()?);
    let arguments = ["--simulator", "--simulator-instant", "--simulator-heartbeat=0", &port];
    let mut server =
        Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &arguments).await?;
    let api = server.api()?;
    let plane = Bed { discovery: Discovery::read(&api).await?, api, timeout };
    for namespace in [HEALTHY, SILENT] {
        plane.namespace(namespace).await?;
    }
    let (machine, own) = (Machine::now()?, usage_of(std::process::id())?.cpu);
    // The first cluster of a server finds its caches empty.
    plane.healthy("first").await?;
    println!("alone");
    let alone = plane.rounds("alone", options.rounds).await?;
    server.check()?;
    let silence = Silence::listen(options.silent).await?;
    plane.silent(&silence).await?;
    println!("beside {} silent clusters", options.silent);
    let before = silence.connections();
    let beside = plane.rounds("beside", options.rounds).await?;
    let connections = silence.connections() - before;
    server.check()?;
    plane.expect_silent().await?;
    print(&alone, &beside, options.silent);
    let used: Duration = server.usage()?.iter().map(|(_, usage)| usage.cpu).sum();
    let own = usage_of(std::process::id())?.cpu.saturating_sub(own);
    let others = Machine::now()?.used_by_others_since(&machine, used + own) * 100.0;
    println!(
        "{connections} connections to silent clusters meanwhile; other programs used {others:.0} % of the machine"
    );
    workdir.passed();
    Ok(())
}

struct Bed {
    api: Api,
    discovery: Discovery,
    timeout: Duration,
}

impl Bed {
    /// A namespace with the example's CNI.
    async fn namespace(&self, name: &str) -> Result<()> {
        self.api.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?.success()?;
        for object in examples(&["cni.yaml"])? {
            self.discovery.create(&self.api, &object, Some(name)).await?;
        }
        Ok(())
    }

    async fn rounds(&self, name: &str, rounds: u32) -> Result<Vec<Times>> {
        let mut all = Vec::new();
        for round in 0..rounds {
            let times = self.healthy(&format!("{name}-{round}")).await?;
            println!(
                "  initialised after {}, Available after {}",
                human_duration(times.initialized),
                human_duration(times.available)
            );
            all.push(times);
        }
        Ok(all)
    }

    /// Creates a healthy cluster, waits until it is Available, and deletes it.
    async fn healthy(&self, name: &str) -> Result<Times> {
        let manifests = manifests(name)?;
        let events = Follower::new(&self.api, HEALTHY_CLUSTERS).await?;
        let begun = Instant::now();
        for object in &manifests {
            self.discovery.create(&self.api, object, Some(HEALTHY)).await?;
        }
        let made = tokio::time::timeout(self.timeout, until_available(events, name, begun));
        let Ok(times) = made.await else {
            let cluster = self.api.get(&format!("{HEALTHY_CLUSTERS}/{name}")).await?.success()?;
            bail!("{name} is not Available after {:?}: {}", self.timeout, cluster["status"]["conditions"]);
        };
        let path = format!("{HEALTHY_CLUSTERS}/{name}");
        self.api.delete(&path).await?.success()?;
        wait::until(&format!("{name} is deleted"), self.timeout, || async {
            Ok((self.api.get(&path).await?.status == 404).then_some(()))
        })
        .await?;
        times
    }

    /// Creates a cluster for every silent endpoint and waits until controllers have met them all.
    async fn silent(&self, silence: &Silence) -> Result<()> {
        let begun = Instant::now();
        let all = silence.ports().enumerate().map(|(number, port)| async move {
            for object in silent_manifests(&format!("silent-{number:05}"), port)? {
                self.discovery.create(&self.api, &object, Some(SILENT)).await?;
            }
            anyhow::Ok(())
        });
        stream::iter(all).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let count = silence.ports().count();
        wait::until("controllers ask every silent cluster", self.timeout, || async {
            let met = silence.met();
            ensure!(met == count, "{met} of {count} were asked");
            Ok(Some(()))
        })
        .await?;
        println!("{count} silent clusters created and met in {}", human_duration(begun.elapsed()));
        Ok(())
    }

    /// Fails if a silent cluster has answered: then nothing was measured.
    async fn expect_silent(&self) -> Result<()> {
        let list = self.api.get(SILENT_CLUSTERS).await?.success()?;
        let clusters = list["items"].as_array().context("the list has no items")?;
        let answered = clusters.iter().find(|cluster| is_initialized(cluster));
        match answered {
            Some(cluster) => bail!("{} is initialised, and should be silent", cluster["metadata"]["name"]),
            None => Ok(()),
        }
    }
}

async fn until_available(mut events: Follower, name: &str, begun: Instant) -> Result<Times> {
    let mut initialized = None;
    loop {
        let cluster = match events.next().await? {
            FollowerEvent::Changed { kind, object } if kind != "DELETED" => object,
            FollowerEvent::Everything(mut clusters) => clusters.remove(name).unwrap_or_default(),
            FollowerEvent::Changed { .. } => continue,
        };
        if cluster["metadata"]["name"] != name {
            continue;
        }
        if is_initialized(&cluster) {
            initialized.get_or_insert_with(|| begun.elapsed());
        }
        if let Some(initialized) = initialized
            && is_there(&cluster, 1, 1)
        {
            return Ok(Times { initialized, available: begun.elapsed() });
        }
    }
}

fn is_initialized(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["controlPlaneInitialized"] == true
}

/// The example's cluster with another name.
fn manifests(name: &str) -> Result<Vec<Value>> {
    let text = serde_json::to_string(&examples(&["sim-cluster.yaml"])?)?;
    // Every object of the example has the cluster's name, alone or as a prefix.
    let text = text.replace("\"quick\"", &format!("{name:?}"));
    Ok(serde_json::from_str(&text.replace("\"quick-", &format!("\"{name}-")))?)
}

/// A cluster whose author gives it an endpoint.
fn silent_manifests(name: &str, port: u16) -> Result<Vec<Value>> {
    let mut all = manifests(name)?;
    all.retain(|object| OF_SILENT.iter().any(|kind| object["kind"] == *kind));
    ensure!(all.len() == OF_SILENT.len(), "the example has other kinds than {OF_SILENT:?}");
    for cluster in all.iter_mut().filter(|object| object["kind"] == "Cluster") {
        cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "127.0.0.1", "port": port});
    }
    Ok(all)
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    let middle = all.len() / 2;
    match all.len() % 2 {
        0 if middle > 0 => (all[middle - 1] + all[middle]) / 2,
        _ => all.get(middle).copied().unwrap_or_default(),
    }
}

fn print(alone: &[Times], beside: &[Times], silent: usize) {
    let beside_title = format!("beside {silent} silent");
    let mut rows = vec![["median until", "alone", &beside_title, "difference"].map(String::from).to_vec()];
    for (name, time) in [
        ("initialised", (|times: &Times| times.initialized) as fn(&Times) -> Duration),
        ("Available", |times| times.available),
    ] {
        let [alone, beside] = [alone, beside].map(|all| median(all.iter().map(time).collect()));
        let difference = (beside.as_secs_f64() / alone.as_secs_f64() - 1.0) * 100.0;
        let cells = [human_duration(alone), human_duration(beside), format!("{difference:+.1} %")];
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    println!("\n{}", table(&rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_cluster_is_the_example_with_an_endpoint_and_a_name() {
        let all = silent_manifests("s-1", 4711).unwrap();
        let cluster = all.iter().find(|object| object["kind"] == "Cluster").unwrap();
        assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "127.0.0.1", "port": 4711}));
        assert!(all.iter().all(|object| object["metadata"]["name"] == "s-1"));
        assert!(!serde_json::to_string(&all).unwrap().contains("\"quick"));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_ones() {
        let seconds = |all: &[u64]| all.iter().map(|one| Duration::from_secs(*one)).collect::<Vec<_>>();
        assert_eq!(median(seconds(&[9, 1, 2])), Duration::from_secs(2));
        assert_eq!(median(seconds(&[1, 9, 2, 4])), Duration::from_secs(3));
    }
}
