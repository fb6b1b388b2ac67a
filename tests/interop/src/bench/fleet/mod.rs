//! `cargo xtask bench fleet`: a fleet of clusters, one control plane machine and one worker each: created, idle,
//! deleted.
//!
//! ```text
//! in process   capstan server                               one process: store, API, controllers, simulator
//! apart        capstan server, capstan sim site             the same, with the machines in a process of their own
//! over TLS     capstan server --api-only, capstan manager   API server and controllers in two processes
//! upstream     etcd, kube-apiserver, kube-controller-manager, four Go managers with their in-memory provider
//! ```
//!
//! Simulated machines boot instantly in every variant. Their workload clusters run inside the measured processes.

mod planes;
mod report;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::bed::machine::Machine;
use crate::bed::process::usage_of;
use crate::bed::{Workdir, capstan};
use planes::{Kind, Plane};

/// Default number of clusters without a peer. The peer manages far fewer on two cores.
const CLUSTERS: usize = 1_000;
const CLUSTERS_WITH_PEER: usize = 50;

#[derive(Debug, Args)]
pub struct Options {
    /// Number of clusters; several numbers (comma separated) show how the cost per cluster scales [default: 1000,
    /// with a peer 50]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    clusters: Vec<usize>,
    /// Also measure this peer and print ratios
    #[arg(long)]
    peer: Option<Peer>,
    /// Only these variants; with a peer, the first is compared with it
    #[arg(long, value_enum, value_delimiter = ',', default_value = "in-process,apart,over-tls")]
    planes: Vec<Ours>,
    /// Key algorithm of the clusters [default: ECDSA-P256; RSA-2048 with a peer, whose provider supports nothing
    /// else]
    #[arg(long, value_name = "ALGORITHM")]
    key_algorithm: Option<String>,
    /// Seconds for which the idle fleet is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u64,
    /// Timeout of a phase in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1_800)]
    timeout: u64,
    /// Our binary [default: a release build]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// A binary of an earlier commit, measured before ours in each variant
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

/// The peer that is measured too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// Cluster API's Go managers with their in-memory provider on kube-apiserver and etcd.
    Upstream,
}

/// Variants of our own deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ours {
    /// One process.
    InProcess,
    /// One process, and another for the simulated machines: shows the cost of the plane alone.
    Apart,
    /// API server and controllers in separate processes, with TLS between them.
    OverTls,
}

pub async fn run(options: Options) -> Result<()> {
    let mut workdir = Workdir::new("fleet")?;
    let binary = capstan::optimised(options.capstan.as_deref())?;
    let baseline = options.baseline.as_deref().map(|file| capstan::binary(Some(file))).transpose()?;
    let default_algorithm = if options.peer.is_some() { "RSA-2048" } else { "ECDSA-P256" };
    let algorithm = options.key_algorithm.as_deref().unwrap_or(default_algorithm);
    let counts = match (options.clusters.as_slice(), options.peer) {
        ([], None) => vec![CLUSTERS],
        ([], Some(_)) => vec![CLUSTERS_WITH_PEER],
        (given, _) => given.to_vec(),
    };
    let mut kinds: Vec<Kind> = options
        .planes
        .iter()
        .map(|ours| match ours {
            Ours::InProcess => Kind::InProcess,
            Ours::Apart => Kind::Apart,
            Ours::OverTls => Kind::OverTls,
        })
        .collect();
    kinds.extend(options.peer.map(|Peer::Upstream| Kind::Upstream));
    let times =
        run::Times { idle: Duration::from_secs(options.idle), timeout: Duration::from_secs(options.timeout) };
    let mut outcomes = Vec::new();
    for clusters in counts {
        let runs = kinds.iter().flat_map(|kind| {
            let before = baseline.as_ref().filter(|_| *kind != Kind::Upstream);
            before.map(|file| (*kind, file, true)).into_iter().chain([(*kind, &binary, false)])
        });
        for (kind, binary, is_baseline) in runs {
            let name = format!("{}{}", kind.name(), if is_baseline { ", baseline" } else { "" });
            println!("{clusters} clusters, {name}, {algorithm}");
            let folder = workdir.folder(&format!("{}-{clusters}", name.replace([' ', ','], "-")))?;
            let machine = Machine::now()?;
            let own = usage_of(std::process::id())?.cpu;
            let plane = Plane::start(kind, &folder, binary, algorithm).await?;
            let mut outcome = run::fleet(plane, clusters, times).await?;
            outcome.is_baseline = is_baseline;
            outcome.cpu_of_load = usage_of(std::process::id())?.cpu.saturating_sub(own);
            let used = outcome.cpu_of_all + outcome.cpu_of_load;
            outcome.others = Machine::now()?.used_by_others_since(&machine, used);
            outcomes.push(outcome);
        }
    }
    report::print(&outcomes);
    workdir.passed();
    Ok(())
}
