//! Runs scenarios of whole clusters in simulated time, with a fault at every effect.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::Part;
use crate::cargo;

#[derive(Debug, clap::Args, Serialize)]
pub struct Options {
    /// Only these scenarios (comma separated)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only this part of the scenarios, for example `3/8` for the third of eight
    #[arg(long, value_parser = Part::parse, conflicts_with = "only")]
    #[serde(skip)]
    part: Option<Part>,
    /// Inject a fault at every effect instead of a sample
    #[arg(long)]
    #[serde(skip)]
    all: bool,
    /// Without --all: inject a fault at one effect in so many
    #[arg(long, default_value_t = 40)]
    every: usize,
    /// Which one of so many: other numbers select other effects
    #[arg(long, default_value_t = 0)]
    offset: usize,
    /// Inject faults at exactly these effects (comma separated), to repeat a failure
    #[arg(long, value_delimiter = ',')]
    effects: Vec<usize>,
    /// Only these faults (comma separated)
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Fault>,
    /// Run the scenarios without faults
    #[arg(long, conflicts_with_all = ["all", "every"])]
    calm: bool,
    /// With an optimised build: worth its minutes for more than a part of the scenarios
    #[arg(long)]
    #[serde(skip)]
    optimised: bool,
    /// Concurrent runs [default: number of processors]
    #[arg(long)]
    jobs: Option<usize>,
    /// Folder for traces of failed runs
    #[arg(long, default_value = "target/simulate/broken")]
    broken: PathBuf,
    /// File with the results of runs; passed ones are not run again
    #[arg(long, default_value = "target/simulate/runs.jsonl")]
    record: PathBuf,
    /// Run again what passed before
    #[arg(long)]
    again: bool,
    /// Seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// The process crashes after the effect
    Crash,
    /// The effect happens, its response is lost
    Lost,
    /// The process crashes before the effect
    CrashBefore,
    /// The effect is rejected
    Refused,
    /// All watches break after the effect
    Cut,
}

/// Runs the simulation in a program of its own: it forks, so it must have a single thread.
pub fn run(mut options: Options) -> Result<()> {
    if options.all {
        options.every = 1;
    }
    if let Some(part) = options.part {
        options.only = part.take(capstan_scenarios::all()).map(|scenario| scenario.name.to_owned()).collect();
        println!("scenarios: {}", options.only.join(", "));
    }
    let program = match options.all || options.optimised {
        true => cargo::optimised_program("simulate")?,
        // It uses what the tests have built anyway.
        false => cargo::suite_program("simulate")?,
    };
    let status = Command::new(&program)
        .arg(serde_json::to_string(&options)?)
        .current_dir(crate::cargo::root())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    ensure!(status.success(), "the simulation failed ({status})");
    Ok(())
}
