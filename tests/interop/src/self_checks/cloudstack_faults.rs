//! `cargo xtask cloudstack-faults`: runs clusters on a simulated CloudStack with a crash and a lost response at every
//! call, on every kind of network and deleted at the fault too, and with a crash before it at every effect of a brief life.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::Part;
use crate::cargo;

const PROGRAM: &str = "cloudstack-faults";

/// Clusters on every kind of network: those that are finished, and those that are deleted at the fault.
const NETWORKS: [&str; 9] = [
    "brief-vpc",
    "brief-existing",
    "brief-tier",
    "brief-shared",
    "hasty",
    "hasty-vpc",
    "hasty-existing",
    "hasty-tier",
    "hasty-shared",
];

#[derive(Debug, Args)]
pub struct Options {
    /// Only this part, for example `3/32` for the third of 32
    #[arg(long, default_value = "1/1", value_parser = Part::parse)]
    part: Part,
    /// Every part, with an optimised build
    #[arg(long, conflicts_with = "part")]
    all: bool,
    /// Run again what passed before
    #[arg(long)]
    again: bool,
}

pub fn run(options: &Options) -> Result<()> {
    // Many runs are worth the minutes of an optimised build. CI's part uses what its tests have built anyway.
    let optimised = ["--release", "-p", "capstan", "-p", "capstan-cloudstack-provider", "--example", PROGRAM];
    let program = match options.all {
        true => cargo::program(".", PROGRAM, &optimised)?,
        false => cargo::suite_program(PROGRAM)?,
    };
    inject(&program, options, &["short", "whole"], true, &["crash", "lost"])?;
    inject(&program, options, &NETWORKS, true, &["crash", "lost"])?;
    inject(&program, options, &["brief"], false, &["crash", "lost", "crash-before"])
}

/// Runs scenarios with faults at a part of their calls, or of all their effects.
fn inject(program: &Path, options: &Options, scenarios: &[&str], calls: bool, faults: &[&str]) -> Result<()> {
    let Part { one, of } = options.part;
    println!("{}: part {one} of {of}", scenarios.join(", "));
    let options = json!({
        "only": scenarios,
        "every": of,
        "offset": one - 1,
        "effects": [],
        "calls": calls,
        "faults": faults,
        "calm": false,
        "jobs": null,
        "broken": "target/cloudstack-faults/broken",
        "record": "target/cloudstack-faults/runs.jsonl",
        "again": options.again,
        "seed": 1,
    });
    let status = Command::new(program)
        .arg(options.to_string())
        .current_dir(cargo::root())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    ensure!(
        status.success(),
        "failed ({status}); to repeat: cargo xtask cloudstack-faults --part {one}/{of}"
    );
    Ok(())
}
