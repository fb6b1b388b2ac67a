//! `cargo xtask e2e`: Kubernetes' own end-to-end tests of its API that need no node.
//!
//! One process per test, so that each has its own timeout and log.

mod list;
mod run;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use futures::stream::{self, StreamExt as _};
use serde_json::json;

use crate::api::{Api, content};
use crate::bed::{Flavour, Server, Workdir};
use crate::peers::Cache;
use crate::text::{human_duration, table};
use run::{TestResult, run_one};

#[derive(Debug, Args)]
pub struct Options {
    /// Only tests whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// How many tests at a time
    #[arg(long, default_value_t = 6)]
    jobs: usize,
    /// Time limit of one test, in seconds
    #[arg(long, default_value_t = 180)]
    limit: u64,
    /// Which server
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let program = Cache::locate()?.built("e2e.test")?;
    let tests = list::chosen(options.only.as_deref())?;
    println!("{} tests on {}, {} at a time", tests.len(), options.server.name(), options.jobs);
    let mut workdir = Workdir::new("e2e")?;
    let mut server =
        Server::start(options.server, &workdir.folder("server")?, options.capstan.as_deref()).await?;
    create_node(&server.api()?).await?;

    let logs = workdir.folder("logs")?;
    let started = Instant::now();
    let limit = Duration::from_secs(options.limit);
    let count = tests.len();
    // In order of completion: a slow test blocks no slot that another could use.
    let mut outcomes = stream::iter(tests.into_iter().enumerate())
        .map(|numbered| run_one(&program, &server.kubeconfig, &logs, numbered, limit))
        .buffer_unordered(options.jobs.max(1));
    let mut bad = Vec::new();
    let mut done = 0;
    while let Some(outcome) = outcomes.next().await {
        let outcome = outcome?;
        done += 1;
        println!(
            "  [{done}/{count}] {}  {}  {}",
            outcome.result.name(),
            human_duration(outcome.took),
            outcome.name
        );
        if outcome.result != TestResult::Passed {
            bad.push(outcome);
        }
    }
    drop(outcomes);
    server.check()?;
    println!("{} of {count} passed in {}", count - bad.len(), human_duration(started.elapsed()));
    if bad.is_empty() {
        workdir.passed();
        return Ok(());
    }
    let mut rows = vec![["result", "time", "test", "log"].map(String::from).to_vec()];
    for outcome in &bad {
        rows.push(vec![
            outcome.result.name().to_owned(),
            human_duration(outcome.took),
            outcome.name.clone(),
            outcome.log.display().to_string(),
        ]);
        println!("\n{}\n{}", outcome.name, run::failure(&outcome.log));
    }
    println!("\n{}", table(&rows));
    bail!("{} of {count} tests did not pass", bad.len())
}

/// The framework waits for one Ready, schedulable node before any test.
async fn create_node(api: &Api) -> Result<()> {
    let ready = json!({"conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "set by the test bed",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bed"}, "status": ready});
    api.post("/api/v1/nodes", &node).await?.success()?;
    // kube-apiserver's admission taints every new node as not ready.
    let patch = json!({"spec": {"taints": null}});
    api.patch("/api/v1/nodes/bed", content::MERGE_PATCH, &patch).await?.success()?;
    let patch = json!({"status": ready});
    api.patch("/api/v1/nodes/bed/status", content::MERGE_PATCH, &patch).await?.success()?;
    Ok(())
}
