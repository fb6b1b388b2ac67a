//! `cargo xtask crash`: kills the server with SIGKILL under load, repeatedly. No acknowledged write may be lost, and
//! no watcher may miss or repeat an event.

mod damage;
mod ledger;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

use super::Part;
use crate::api::{Api, Http};
use crate::bed::{Server, Workdir, capstan, kubeconfig, ports::free_port};
use crate::text::human_duration;
use ledger::Stored;
use writer::Writer;

const NAMESPACE: &str = "/api/v1/namespaces/crash";
const COLLECTION: &str = "/api/v1/namespaces/crash/configmaps";
const LABEL: &str = "crash";
/// Name of the object whose creation ends a watch.
const END: &str = "end";

#[derive(Debug, Args)]
pub struct Options {
    /// Number of kills, over all parts
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Only this part of the kills, for example `2/5`, with data of its own [default: all]
    #[arg(long, value_parser = Part::parse, default_value = "1/1", hide_default_value = true)]
    part: Part,
    /// Number of writing clients
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Number of watching clients
    #[arg(long, default_value_t = 6)]
    watchers: usize,
    /// Seed of the times and the writes [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Delete, empty or truncate a file of the store after every other kill: the server must refuse it
    #[arg(long)]
    damage: bool,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// State of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Up,
    Down,
    /// Writers stop; watchers continue to the end marker.
    Draining,
    Over,
}

/// Blocks clients while the server is down.
#[derive(Clone, Debug)]
pub struct Gate(watch::Receiver<Phase>);

impl Gate {
    /// Waits until the server accepts writes. False when the run is over.
    pub async fn open(&mut self) -> bool {
        let phase = self.0.wait_for(|phase| *phase != Phase::Down).await;
        phase.is_ok_and(|phase| *phase == Phase::Up)
    }

    /// Waits until the server is up. False when the run is over.
    pub async fn reopened(&mut self) -> bool {
        let phase = self.0.wait_for(|phase| *phase != Phase::Down).await;
        phase.is_ok_and(|phase| *phase != Phase::Over)
    }
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let seed = options.seed.unwrap_or_else(rand::random);
    let rounds = options.part.take(0..options.rounds).count();
    println!("{rounds} kills, {} writers, {} watchers, seed {seed}", options.writers, options.watchers);
    let mut workdir = Workdir::new("crash")?;
    let folder = workdir.folder("server")?;
    let port = free_port()?;
    let mut server = Server::capstan(&folder, &binary, port).await?;
    let access = kubeconfig::read(&server.kubeconfig)?;
    let api = || Api::new(&access, Http::One);
    let main = api()?;
    main.post("/api/v1/namespaces", &json!({"metadata": {"name": "crash"}})).await?.success()?;
    let from = parse_revision(&main.get(&format!("{NAMESPACE}/secrets")).await?.success()?)?;

    let (phase, gate) = watch::channel(Phase::Up);
    let gate = Gate(gate);
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let query = format!("{COLLECTION}?labelSelector={LABEL}%3Dyes");
    let mut watchers = Vec::new();
    for _ in 0..options.watchers {
        watchers.push(tokio::spawn(watcher::watch(api()?, gate.clone(), query.clone(), from)));
    }
    let mut writers = Vec::new();
    for number in 0..options.writers {
        let writer = Writer::new(number, seed, api()?, gate.clone(), acknowledged.clone());
        writers.push(tokio::spawn(writer.run()));
    }

    let started = Instant::now();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut restarts = Vec::new();
    let mut damaged = 0;
    for round in 1..=rounds {
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..400))).await;
        if let Some(failed) = writers.iter().position(|writer| writer.is_finished()) {
            writers.swap_remove(failed).await??;
        }
        if let Some(failed) = watchers.iter().position(|watcher| watcher.is_finished()) {
            watchers.swap_remove(failed).await??;
        }
        server.kill()?;
        phase.send(Phase::Down)?;
        if options.damage && round % 2 == 0 {
            let data = folder.join("data");
            damage::round(&data, &binary, &mut rng).await.with_context(|| format!("damage {round}"))?;
            damaged += 1;
        }
        server = Server::capstan(&folder, &binary, port).await.with_context(|| format!("restart {round}"))?;
        restarts.push(server.start_time);
        phase.send(Phase::Up)?;
        if round % 20 == 0 {
            println!("  {round} kills, {} acknowledged writes", acknowledged.lock().await.len());
        }
    }

    tokio::time::sleep(Duration::from_millis(200)).await;
    phase.send(Phase::Draining)?;
    let mut in_doubt = 0;
    for writer in writers {
        in_doubt += writer.await??.in_doubt;
    }
    let end = json!({"metadata": {"name": END, "labels": {LABEL: "yes"}}});
    main.post(COLLECTION, &end).await?.success()?;
    let mut sequences = Vec::new();
    let mut resumed = 0;
    for watcher in watchers {
        let timeout = Duration::from_secs(60);
        let (seen, times) = tokio::time::timeout(timeout, watcher)
            .await
            .context("a watcher did not see the end marker")???;
        sequences.push(seen);
        resumed += times;
    }
    phase.send(Phase::Over)?;
    let stored = stored(&main).await?;
    let acknowledged = acknowledged.lock().await;
    ledger::check(&sequences, &acknowledged, &stored)?;
    if options.damage {
        println!("{damaged} files were deleted, emptied or truncated, and the server named each of them");
    }
    restarts.sort_unstable();
    println!(
        "{rounds} kills in {}: {} acknowledged writes kept, {in_doubt} unacknowledged ones resolved, {} events seen by each of {} watchers over {resumed} connections",
        human_duration(started.elapsed()),
        acknowledged.len(),
        sequences.first().map_or(0, Vec::len),
        sequences.len(),
    );
    if let (Some(median), Some(worst)) = (restarts.get(restarts.len() / 2), restarts.last()) {
        println!("restart to ready: median {}, worst {}", human_duration(*median), human_duration(*worst));
    }
    workdir.passed();
    Ok(())
}

async fn stored(api: &Api) -> Result<BTreeMap<String, Stored>> {
    let list = api.get(&format!("{COLLECTION}?labelSelector={LABEL}%3Dyes")).await?.success()?;
    let mut all = BTreeMap::new();
    for item in list["items"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &item["metadata"];
        if metadata["name"] == END {
            continue;
        }
        let found = Stored {
            uid: text(&metadata["uid"]),
            count: parse_count(item)?,
            revision: parse_revision(item)?,
        };
        all.insert(text(&metadata["name"]), found);
    }
    Ok(all)
}

fn parse_revision(object: &Value) -> Result<u64> {
    let text = object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    text.parse().with_context(|| format!("resourceVersion {text}"))
}

fn parse_count(object: &Value) -> Result<u64> {
    let text = object["data"]["count"].as_str().context("no count")?;
    text.parse().with_context(|| format!("count {text}"))
}
