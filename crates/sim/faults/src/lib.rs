//! Runs scenarios in simulated time and injects faults at their effects. A program with scenarios calls [`main`]; it must
//! have a single thread, because it forks.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

mod copies;
mod plan;
mod progress;
mod record;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{Scenario, run, run_with};
use serde::Deserialize;

use copies::Copies;
use plan::{Kind, Plan};
use progress::{Progress, since};
use record::{Record, Run, hash_of};

/// Options as JSON in the only argument: see `cargo xtask simulate --help`.
#[derive(Debug, Deserialize)]
struct Options {
    only: Vec<String>,
    every: usize,
    offset: usize,
    effects: Vec<usize>,
    /// Only effects that are calls outside the API, such as to a cloud.
    #[serde(default)]
    calls: bool,
    faults: Vec<Kind>,
    calm: bool,
    jobs: Option<usize>,
    broken: PathBuf,
    record: PathBuf,
    again: bool,
    seed: u64,
}

/// A scenario with a name for tables and files.
struct Named<S> {
    name: &'static str,
    scenario: S,
}

/// The run of a scenario without faults.
struct Reference {
    /// Effects that may get faults.
    exposed: Vec<usize>,
    world: u64,
}

/// Runs the scenarios that the program's argument selects. Fails if a property was violated in any run.
pub fn main<S: Scenario>(scenarios: impl IntoIterator<Item = (&'static str, S)>) -> Result<()> {
    let mut scenarios: Vec<Named<S>> =
        scenarios.into_iter().map(|(name, scenario)| Named { name, scenario }).collect();
    let options = std::env::args().nth(1).context("no options: run `cargo xtask simulate`")?;
    let options: Options = serde_json::from_str(&options).context("the options")?;
    scenarios.retain(|one| options.only.is_empty() || options.only.iter().any(|name| name == one.name));
    ensure!(!scenarios.is_empty(), "no scenario with these names: {}", options.only.join(", "));
    let references = references(&scenarios, &options)?;
    if options.calm {
        return Ok(());
    }
    with_faults(&scenarios, &references, &options)
}

/// Runs every scenario once without faults and reports failures.
fn references<S: Scenario>(scenarios: &[Named<S>], options: &Options) -> Result<Vec<Reference>> {
    // A code change may show only after a fault, with an unchanged run without faults: so the program is part of the
    // hash.
    let program = std::env::current_exe().and_then(std::fs::read).context("read this program")?;
    let program = hash_of(program);
    let (mut references, mut failed) = (Vec::new(), Vec::new());
    for Named { name, scenario } in scenarios {
        let begun = Instant::now();
        let report = run(scenario, options.seed, &[]);
        let took = begun.elapsed().as_secs_f64();
        let outcome = match &report.violation {
            None => "passed".to_owned(),
            Some(violation) => {
                eprintln!("{}", report.transcript());
                failed.push(*name);
                violation.to_string()
            }
        };
        println!("{name}: {} effects, {took:.1} s: {outcome}", report.trace.effects());
        let from = report.trace.faults_from();
        let exposed = match options.calls {
            true => report.trace.calls().into_iter().filter(|call| *call >= from).collect(),
            false => (from..report.trace.effects()).collect(),
        };
        references.push(Reference { exposed, world: hash_of((program, report.trace.text())) });
    }
    ensure!(failed.is_empty(), "these scenarios fail: {}", failed.join(", "));
    Ok(references)
}

/// The faults of a scenario. A sample of calls is one call in so many, not one effect.
fn plan(options: &Options, reference: &Reference) -> Plan {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let every = options.every.max(1);
    let sampled_calls = || reference.exposed.iter().copied().skip(options.offset % every).step_by(every);
    let effects = match options.effects.as_slice() {
        // A short scenario may have no call in this sample.
        [] => options.calls.then(|| sampled_calls().collect()),
        named => Some(named.to_vec()),
    };
    Plan {
        kinds: if options.faults.is_empty() { Kind::ALL.to_vec() } else { options.faults.clone() },
        every,
        offset: options.offset,
        effects,
        jobs: options.jobs.unwrap_or(processors).max(1),
    }
}

fn with_faults<S: Scenario>(
    scenarios: &[Named<S>],
    references: &[Reference],
    options: &Options,
) -> Result<()> {
    std::fs::create_dir_all(&options.broken).with_context(|| options.broken.display().to_string())?;
    let record = Arc::new(Record::open(&options.record)?);
    // Effects that are named explicitly run again.
    let again = options.again || !options.effects.is_empty();
    let plans: Vec<Plan> = references.iter().map(|reference| plan(options, reference)).collect();
    let passed: Vec<Vec<Run>> = scenarios
        .iter()
        .zip(references.iter().zip(&plans))
        .map(|(Named { name, .. }, (reference, plan))| {
            let passed = if again { Vec::new() } else { record.passed(name, reference.world) };
            let planned = |run: &Run| plan.faults(run.effect).contains(&run.kind.at(run.effect));
            passed.into_iter().filter(planned).collect()
        })
        .collect();
    let planned: usize =
        plans.iter().zip(references).map(|(plan, reference)| plan.runs(&reference.exposed)).sum();
    let progress = Arc::new(Progress::of(planned.saturating_sub(passed.iter().map(Vec::len).sum())));
    let mut rows = Vec::new();
    for (index, (Named { name, scenario }, passed)) in scenarios.iter().zip(passed).enumerate() {
        let (reference, plan) = (&references[index], &plans[index]);
        let (progress, record) = (progress.clone(), record.clone());
        let (name, effects) = (*name, reference.exposed.last().map_or(0, |last| last + 1));
        let ended = move |run: &Run| {
            progress.ended(run, effects);
            if let Some(what) = &run.broken {
                println!("{name}, {}: {what}", run.kind.at(run.effect));
            }
            record.add(run)
        };
        let folder = options.broken.clone();
        let copies = Arc::new(Copies::new(name, reference.world, plan.clone(), &passed, folder, ended));
        copies.end_if_copy(run_with(scenario, options.seed, copies.clone()));
        let mut runs = copies.end()?;
        runs.extend(passed);
        rows.push(table::Row::new(plan, name, reference.exposed.len(), &runs));
        table::print(&rows[rows.len() - 1..], rows.len() == 1);
    }
    println!();
    table::print(&rows, true);
    let (runs, broken) = table::totals(&rows);
    println!(
        "{runs} runs of {} scenarios, {broken} failed; {} of them now, {}",
        rows.len(),
        progress.runs.load(Ordering::Relaxed),
        since(progress.begun)
    );
    ensure!(broken == 0, "{broken} of {runs} runs failed");
    Ok(())
}
