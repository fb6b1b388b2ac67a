//! `cargo xtask interop`: the suites against real peers that CI runs, in order, within a budget.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::bed::capstan;
use crate::text::{human_duration, table};

#[derive(Debug, Args)]
pub struct Options {
    /// Minutes that all suites together may take
    #[arg(long, default_value_t = 40)]
    budget: u64,
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// The suites, those that tell the most in the least time first.
const SUITES: &[(&str, &[&str])] = &[
    ("schema-diff", &[]),
    ("kubeadm-accepts", &[]),
    ("schema-verdicts", &["--per-kind", "30"]),
    ("planner-goldens", &[]),
    ("corefile-goldens", &[]),
    ("conversion-goldens", &[]),
    ("etcd-members", &[]),
    ("port-forward", &[]),
    ("kubectl-parity", &[]),
    ("clients", &[]),
    ("cloudstack-clients", &[]),
    ("crash", &["--rounds", "200"]),
    ("quick-start", &[]),
    ("demo", &[]),
    ("manager", &[]),
    ("sim-under-upstream", &[]),
    ("core-over-capd", &[]),
    ("clusterctl", &[]),
    ("kubectl-workload", &[]),
    ("e2e", &[]),
    ("upstream-on-capstan", &[]),
    ("simulate", &["--faults", "crash,lost", "--every", "128"]),
    ("real-cluster", &[]),
];

/// Runs every suite even if one fails, and fails if one did or if the budget was not enough.
pub fn run(options: &Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let program = std::env::current_exe().context("the path of this program")?;
    let budget = Duration::from_secs(options.budget * 60);
    let begin = Instant::now();
    let mut rows = vec![["suite", "verdict", "time"].map(String::from).to_vec()];
    let mut failed = Vec::new();
    for (name, arguments) in SUITES {
        if begin.elapsed() > budget {
            rows.push(vec![(*name).to_owned(), "NOT RUN".to_owned(), "the budget is spent".to_owned()]);
            failed.push(*name);
            continue;
        }
        println!("\n== cargo xtask {name} {}", arguments.join(" "));
        let since = Instant::now();
        let status =
            Command::new(&program).arg(name).args(*arguments).env("CAPSTAN_BIN", &binary).status()?;
        let verdict = if status.success() { "passed" } else { "FAILED" };
        rows.push(vec![(*name).to_owned(), verdict.to_owned(), human_duration(since.elapsed())]);
        if !status.success() {
            failed.push(*name);
        }
    }
    println!("\n{}", table(&rows));
    let took = human_duration(begin.elapsed());
    if !failed.is_empty() {
        bail!("{} of {} suites did not pass in {took}: {}", failed.len(), SUITES.len(), failed.join(", "));
    }
    println!("{} suites passed in {took}", SUITES.len());
    Ok(())
}
