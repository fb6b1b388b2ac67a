//! Plays the stories of whole clusters in simulated time, and disturbs them at every effect.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::Part;
use crate::cargo;

/// How much is simulated.
#[derive(Debug, clap::Args, Serialize)]
pub struct Options {
    /// Only these stories (comma separated)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only this part of the stories, such as `3/8`, the third of eight
    #[arg(long, value_parser = Part::parse, conflicts_with = "only")]
    #[serde(skip)]
    part: Option<Part>,
    /// Disturb every effect instead of a sample
    #[arg(long)]
    #[serde(skip)]
    all: bool,
    /// Without --all: disturb one effect in so many
    #[arg(long, default_value_t = 40)]
    every: usize,
    /// Which one of so many: other numbers, other effects
    #[arg(long, default_value_t = 0)]
    offset: usize,
    /// Disturb exactly these effects (comma separated), to see something again
    #[arg(long, value_delimiter = ',')]
    effects: Vec<usize>,
    /// Only these misfortunes (comma separated)
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Misfortune>,
    /// Play the stories as they are, undisturbed
    #[arg(long, conflicts_with_all = ["all", "every"])]
    calm: bool,
    /// Runs at the same time; as many as there are processors if it is not given
    #[arg(long)]
    jobs: Option<usize>,
    /// Where traces of what broke are written
    #[arg(long, default_value = "target/simulate/broken")]
    broken: PathBuf,
    /// Where runs are recorded as they end: what held there is not run again
    #[arg(long, default_value = "target/simulate/runs.jsonl")]
    record: PathBuf,
    /// Run again what held before
    #[arg(long)]
    again: bool,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Misfortune {
    /// The process dies after the effect
    Crash,
    /// The effect happens, its answer is lost
    Lost,
    /// The process dies before the effect
    CrashBefore,
    /// The effect is refused
    Refused,
    /// All watches break after the effect
    Cut,
}

/// Runs the suite: a program of its own, built to be fast and with one thread, since it copies itself.
pub fn run(mut options: Options) -> Result<()> {
    if options.all {
        options.every = 1;
    }
    if let Some(part) = options.part {
        options.only = part.take(capstan_scenarios::all()).map(|story| story.name.to_owned()).collect();
        println!("stories: {}", options.only.join(", "));
    }
    // Hours of runs are worth the minutes that an optimised build takes; what CI samples is built by its tests anyway.
    let optimised = ["--release", "-p", "capstan", "-p", "capstan-scenarios", "--example", "simulate"];
    let program = match options.all {
        true => cargo::program(".", "simulate", &optimised)?,
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
