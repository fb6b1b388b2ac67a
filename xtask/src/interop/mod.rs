//! `cargo xtask interop`: runs the suites that a change can affect, a fixed smoke set and a rotating share of the
//! others, within a time budget. `--all` runs every suite and writes docs/dev/interop.md.

pub mod history;
pub mod page;
pub mod plan;
mod run;
pub mod suites;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::{self, Cache};
use crate::text::{human_duration, table};
use crate::{cargo, node_image};
use history::{Passes, Repository};
use plan::{Budget, Candidate, Plan};
use run::{Outcome, Runner};
use suites::Need;

/// The program in tests/interop that runs suites.
pub const PROGRAM: &str = "capstan-interop";
/// File with the plan for `--planned`, relative to the repository.
const PLANNED: &str = "target/interop/plan.txt";
/// Folder for the output of suites that run at the same time, relative to the repository.
const LOGS: &str = "target/interop/logs";

#[derive(Debug, Args)]
pub struct Options {
    /// Run every suite and write docs/dev/interop.md; a pass counts until something changes that the suite depends on
    #[arg(long, conflicts_with_all = ["only", "plan", "planned"])]
    all: bool,
    /// With `--all`, run again what has passed and is unaffected by changes since
    #[arg(long, requires = "all")]
    again: bool,
    /// With `--all`, run nothing: write the rows of suites that have passed and are unaffected by changes since
    #[arg(long, requires = "all", conflicts_with = "again")]
    recorded: bool,
    /// Run these suites (comma separated)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print the chosen suites, store them for `--planned`, and exit
    #[arg(long, conflicts_with_all = ["only", "planned"])]
    plan: bool,
    /// Run the suites that `--plan` chose
    #[arg(long, conflicts_with = "only")]
    planned: bool,
    /// Budget of the chosen suites, in minutes
    #[arg(long, default_value_t = 14)]
    budget: u64,
    /// Budget of the chosen suites and of building their missing peers, in minutes
    #[arg(long, default_value_t = 24)]
    budget_with_peers: u64,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Suites at the same time; with more than one, each writes its output to a file
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
}

pub fn run(options: &Options) -> Result<()> {
    let root = cargo::root();
    let repository = Repository::new(root.clone());
    let passes = Passes::load(&root)?;
    if options.recorded {
        let whole = Candidate::whole(&repository, &passes)?;
        let kept: Vec<_> = whole.iter().filter_map(Outcome::kept).collect();
        page::write(&root, &kept)?;
        report_left_out();
        return report(&kept);
    }
    let all = Candidate::all(&repository, &passes)?;
    let plan = match options {
        Options { all: true, .. } => Plan::of(Candidate::whole(&repository, &passes)?, &[], "all"),
        Options { planned: true, .. } => planned(all, &root)?,
        Options { only, .. } if !only.is_empty() => {
            only.iter().try_for_each(|name| suites::find(name).map(|_| ()))?;
            Plan::of(all, only, "requested")
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
    // Results are those of a commit.
    let commit = if repository.is_clean()? { Some(repository.head()?) } else { None };
    if commit.is_none() {
        println!("uncommitted changes: results are not recorded");
    }
    // One row at a time: an interrupted run leaves those of the suites that ran.
    let record = |outcomes: &[Outcome]| match &commit {
        Some(_) if options.all => page::write(&root, outcomes),
        _ => Ok(()),
    };
    let program = cargo::suite_program(PROGRAM)?;
    let start = |line: &[String], log: Option<&Path>| {
        let mut command = Command::new(&program);
        command.args(line).env("CAPSTAN_BIN", &binary);
        if let Some(log) = log {
            let file = std::fs::File::create(log).with_context(|| log.display().to_string())?;
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        }
        Ok(command.status()?.success())
    };
    let runner = Runner {
        keep: options.all && !options.again,
        commit: commit.as_deref(),
        jobs: options.jobs as usize,
        logs: root.join(LOGS),
    };
    let outcomes = runner.run(&plan, start, record)?;
    if options.all {
        report_left_out();
    }
    report(&outcomes)
}

/// Builds everything the suites of the stored plan need. CI does this while it compiles.
pub fn prepare_planned() -> Result<()> {
    let root = cargo::root();
    let all = Candidate::all(&Repository::new(root.clone()), &Passes::default())?;
    prepare(&planned(all, &root)?)
}

fn planned(all: Vec<Candidate>, root: &Path) -> Result<Plan> {
    let path = root.join(PLANNED);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: create it with `cargo xtask interop --plan`", path.display()))?;
    let names: Vec<String> = text.lines().map(String::from).collect();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|one| one.name() == **name)) {
        bail!("{}: unknown suite {unknown}: run `cargo xtask interop --plan` again", path.display());
    }
    Ok(Plan::of(all, &names, "planned"))
}

/// Builds everything the suites need, so that a missing peer fails before any suite runs.
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

/// Prints the suites that a run of everything does not take, and why.
fn report_left_out() {
    let header = ["left out", "reason"].map(String::from).to_vec();
    let rows = suites::LEFT_OUT.iter().map(|(name, reason)| vec![(*name).to_owned(), (*reason).to_owned()]);
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    println!("\n{}", table(&rows));
}

fn report(outcomes: &[Outcome]) -> Result<()> {
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
