//! `cargo xtask interop`: the suites against real peers: those that a change can affect, a fixed smoke set, and the
//! others in turn, within a budget. `--all` runs everything and writes docs/dev/interop.md.

pub mod history;
pub mod page;
pub mod plan;
pub mod suites;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::{self, Cache};
use crate::text::{human_duration, table};
use crate::{cargo, node_image};
use history::{Passes, Repository};
use plan::{Budget, Candidate, Plan};
use suites::Need;

/// The program that runs suites, of tests/interop.
pub const PROGRAM: &str = "capstan-interop";
/// Where a plan waits for the run that carries it out, below the repository.
const PLANNED: &str = "target/interop/plan.txt";

#[derive(Debug, Args)]
pub struct Options {
    /// Run every suite and write docs/dev/interop.md
    #[arg(long, conflicts_with_all = ["only", "plan", "planned"])]
    all: bool,
    /// Run these suites (comma separated)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print what a run would take, keep it for `--planned`, and stop
    #[arg(long, conflicts_with_all = ["only", "planned"])]
    plan: bool,
    /// Run what `--plan` chose
    #[arg(long, conflicts_with = "only")]
    planned: bool,
    /// Minutes that the chosen suites may take together
    #[arg(long, default_value_t = 16)]
    budget: u64,
    /// Minutes that the chosen suites and the builds of their missing peers may take together
    #[arg(long, default_value_t = 32)]
    budget_with_peers: u64,
    /// Our binary; built with the profile `ci` when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<()> {
    let root = cargo::root();
    let repository = Repository::new(root.clone());
    let passes = Passes::load(&root)?;
    let all = Candidate::all(&repository, &passes)?;
    let plan = match options {
        Options { all: true, .. } => Plan::of(all, &[], "all"),
        Options { planned: true, .. } => planned(all, &root)?,
        Options { only, .. } if !only.is_empty() => {
            only.iter().try_for_each(|name| suites::find(name).map(|_| ()))?;
            Plan::of(all, only, "asked for")
        }
        _ => {
            let budget = Budget {
                suites: Duration::from_secs(options.budget * 60),
                with_peers: Duration::from_secs(options.budget_with_peers * 60),
            };
            let cache = Cache::locate()?;
            let seed = u64::from_str_radix(&repository.head()?[..16], 16)?;
            plan::choose(all, &|name| cache.built(name).is_ok(), budget, seed)
        }
    };
    plan.print();
    if options.plan {
        let path = root.join(PLANNED);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        let names: Vec<_> = plan.chosen.iter().map(|one| one.candidate.name()).collect();
        return std::fs::write(&path, names.join("\n")).with_context(|| path.display().to_string());
    }
    prepare(&plan)?;
    let binary = match &options.capstan {
        Some(path) => std::path::absolute(path)?,
        None => cargo::suite_program("capstan")?,
    };
    let outcomes = run_all(&plan, &binary)?;
    if repository.is_clean()? {
        let head = repository.head()?;
        for outcome in outcomes.iter().filter(|outcome| outcome.passed) {
            history::remember(&outcome.name, &head, outcome.took)?;
        }
        if options.all {
            page::write(&root, &outcomes, &head)?;
        }
    } else {
        println!("there are uncommitted changes: nothing is recorded");
    }
    judge(&outcomes)
}

/// Builds what the suites of the kept plan need, as CI does while it compiles other things.
pub fn prepare_planned() -> Result<()> {
    let root = cargo::root();
    let all = Candidate::all(&Repository::new(root.clone()), &Passes::default())?;
    prepare(&planned(all, &root)?)
}

fn planned(all: Vec<Candidate>, root: &Path) -> Result<Plan> {
    let path = root.join(PLANNED);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: make it with `cargo xtask interop --plan`", path.display()))?;
    let names: Vec<String> = text.lines().map(String::from).collect();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|one| one.name() == **name)) {
        bail!("{}: {unknown} is no suite: make the plan again", path.display());
    }
    Ok(Plan::of(all, &names, "planned"))
}

/// Builds everything the suites need, so that a missing peer shows before any of them runs.
fn prepare(plan: &Plan) -> Result<()> {
    let names = plan.peers();
    if !names.is_empty() {
        peers::build(&names)?;
    }
    let needs = |need: Need| plan.chosen.iter().any(|one| one.candidate.suite.needs.contains(&need));
    if needs(Need::KubeRsSuite) {
        cargo::build("tests/clients/kube-rs", "kube-rs-suite", &["--locked"])?;
    }
    if needs(Need::NodeImage) {
        node_image::ensure(&node_image::images()?)?;
    }
    Ok(())
}

/// What one suite gave.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub suite: &'static suites::Suite,
    pub passed: bool,
    pub took: Duration,
}

/// Runs every chosen suite, even if one fails.
fn run_all(plan: &Plan, binary: &Path) -> Result<Vec<Outcome>> {
    let program = cargo::suite_program(PROGRAM)?;
    let mut outcomes = Vec::new();
    for chosen in &plan.chosen {
        let line = chosen.candidate.command();
        println!("\n== cargo xtask {}", line.join(" "));
        let since = Instant::now();
        let status = Command::new(&program).args(&line).env("CAPSTAN_BIN", binary).status()?;
        outcomes.push(Outcome {
            name: chosen.candidate.name(),
            suite: chosen.candidate.suite,
            passed: status.success(),
            took: since.elapsed(),
        });
    }
    Ok(outcomes)
}

fn judge(outcomes: &[Outcome]) -> Result<()> {
    let mut rows = vec![["suite", "result", "time"].map(String::from).to_vec()];
    for outcome in outcomes {
        let result = if outcome.passed { "passed" } else { "FAILED" };
        rows.push(vec![outcome.name.clone(), result.to_owned(), human_duration(outcome.took)]);
    }
    println!("\n{}", table(&rows));
    let took = human_duration(outcomes.iter().map(|outcome| outcome.took).sum());
    let failed: Vec<_> =
        outcomes.iter().filter(|outcome| !outcome.passed).map(|one| one.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("{} of {} suites failed in {took}: {}", failed.len(), outcomes.len(), failed.join(", "));
    }
    println!("{} suites passed in {took}", outcomes.len());
    Ok(())
}
