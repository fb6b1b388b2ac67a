//! `cargo xtask openstack-real`: the lifecycle of a cluster on real OpenStack services.
//!
//! Keystone, Placement, Glance, Nova, Neutron, Cinder and Octavia run on this machine (`tests/openstack-bed`), with two
//! hypervisors that boot nothing, each in a zone of its own. `capstan server` brings a cluster of 3+3 to Available, scales
//! it down and up, upgrades and deletes it. Guests execute the user data that Nova holds (`bed::real_openstack`). No service
//! may have anything of the cluster afterwards.

mod manifest;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use tokio::net::TcpListener;

use super::capc_on_sim::report::{Calls, Phase};
use crate::api::Api;
use crate::bed::cluster::Cluster;
use crate::bed::ports::free_port;
use crate::bed::real_openstack::{Pairing, RealOpenStack, ZONES};
use crate::bed::{Server, Workdir, capstan};
use crate::cluster_api::manager::ensure_no_warnings;
use crate::discovery::Discovery;
use crate::text::human_duration;
use manifest::{NAME, NEXT, VERSION};

#[derive(Debug, Args)]
pub struct Options {
    /// Folder of the services [default: in the cache of peers]
    #[arg(long)]
    bed: Option<PathBuf>,
    /// Leave the services running: the next run starts sooner
    #[arg(long)]
    keep: bool,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// Services of Python answer slowly on a busy machine, and control planes are rolled out one machine at a time.
const PATIENCE: Duration = Duration::from_secs(900);

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let cloud = RealOpenStack::start(options.bed.as_deref()).await?;
    let mut workdir = Workdir::new("openstack-real")?;
    let lived = live(&cloud, &binary, &workdir.folder("run")?).await;
    if !options.keep {
        cloud.stop().await?;
    }
    lived?;
    workdir.passed();
    Ok(())
}

/// What a lifecycle needs.
struct Lifecycle<'a> {
    cloud: &'a RealOpenStack,
    server: Server,
    pairing: Pairing,
    phases: Vec<(&'static str, Phase)>,
}

impl Lifecycle<'_> {
    fn check(&mut self) -> Result<()> {
        self.server.check()?;
        self.pairing.check()
    }

    /// Carries out a phase and records what it took.
    async fn phase<T>(
        &mut self,
        name: &'static str,
        doing: impl AsyncFnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let (before, begin) = (self.cloud.calls()?, Instant::now());
        let done = doing(self).await.context(name)?;
        let phase = Phase { calls: Calls::between(&before, &self.cloud.calls()?), took: begin.elapsed() };
        println!("  {name}: {}, {} calls", human_duration(phase.took), phase.calls.total());
        self.phases.push((name, phase));
        Ok(done)
    }
}

async fn live(cloud: &RealOpenStack, binary: &std::path::Path, folder: &std::path::Path) -> Result<()> {
    let before = cloud.resources().await?;
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    let port = listener.local_addr()?.port();
    let mut lifecycle = Lifecycle {
        cloud,
        pairing: cloud.pair(listener).await?,
        server: Server::capstan_with(&folder.join("server"), binary, free_port()?, &[]).await?,
        phases: Vec::new(),
    };
    let api = lifecycle.server.api()?;
    let objects = manifest::objects(&cloud.clouds_yaml, port)?;
    let cluster = Cluster::prepare(&api, NAME, objects.clone()).await?.patient(PATIENCE);
    let kubeconfig = folder.join("workload.kubeconfig");

    lifecycle
        .phase("created, 3+3 is Available", async |lifecycle| {
            cluster.create().await?;
            cluster.install_cni(&kubeconfig).await?;
            cluster.wait_available(3, 3, &mut || lifecycle.check()).await
        })
        .await?;
    spread(cloud, &api).await?;
    for (name, control_plane, per_zone) in [("scaled down to 1+2", 1, 1), ("scaled up to 3+4", 3, 2)] {
        lifecycle
            .phase(name, async |lifecycle| {
                cluster.scale(control_plane, per_zone).await?;
                cluster.wait_available(control_plane, 2 * per_zone, &mut || lifecycle.check()).await
            })
            .await?;
    }
    let workload = cluster.workload(&kubeconfig).await?;
    cluster.wait_nodes(&workload, 7, VERSION).await?;
    lifecycle
        .phase("upgraded", async |lifecycle| {
            let discovery = Discovery::read(&api).await?;
            for template in manifest::next_templates(&objects)? {
                discovery.create(&api, &template, Some(NAME)).await?;
            }
            let (control_plane, workers) = manifest::upgrade();
            cluster.change(control_plane, workers).await?;
            cluster.wait_nodes(&workload, 7, NEXT).await?;
            cluster.wait_available(3, 4, &mut || lifecycle.check()).await
        })
        .await?;
    spread(cloud, &api).await?;
    lifecycle.phase("deleted", async |lifecycle| cluster.delete(&mut || lifecycle.check()).await).await?;

    ensure_same(&before, &cloud.resources().await?)?;
    ensure_no_warnings([lifecycle.server.logged_warnings()])
}

/// Fails unless every machine is in the zone of its failure domain, and each role is in both zones.
async fn spread(cloud: &RealOpenStack, api: &Api) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let servers = cloud.servers().await?;
    let zone_of: BTreeMap<String, String> = servers
        .iter()
        .map(|server| {
            (format!("openstack:///{}", text(&server["id"])), text(&server["OS-EXT-AZ:availability_zone"]))
        })
        .collect();
    let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAME}/machines");
    let machines = api.get(&path).await?.success()?;
    let mut zones: BTreeMap<bool, BTreeSet<String>> = BTreeMap::new();
    for machine in machines["items"].as_array().context("no items")? {
        let (name, spec) = (text(&machine["metadata"]["name"]), &machine["spec"]);
        let (wanted, id) = (text(&spec["failureDomain"]), text(&spec["providerID"]));
        let zone = zone_of.get(&id).with_context(|| format!("{name}: Nova has no server {id}"))?;
        ensure!(*zone == wanted, "{name} is in zone {zone}, its failure domain is {wanted:?}");
        let labels = &machine["metadata"]["labels"];
        let control_plane = labels.get("cluster.x-k8s.io/control-plane").is_some();
        zones.entry(control_plane).or_default().insert(wanted);
    }
    let all = BTreeSet::from(ZONES.map(ToOwned::to_owned));
    ensure!(zones.len() == 2 && zones.values().all(|held| *held == all), "machines are in zones {zones:?}");
    Ok(())
}

fn ensure_same(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Result<()> {
    let left: Vec<&str> = after.difference(before).map(String::as_str).collect();
    ensure!(left.is_empty(), "left behind:\n{}", left.join("\n"));
    let lost: Vec<&str> = before.difference(after).map(String::as_str).collect();
    ensure!(lost.is_empty(), "deleted, and not ours:\n{}", lost.join("\n"));
    Ok(())
}
