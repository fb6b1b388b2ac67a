//! Runs the scenarios in simulated time and injects faults at their effects. `cargo xtask simulate` runs this
//! program.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

mod copies;
mod plan;
mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{run, run_with};
use capstan_scenarios::{ClusterScenario, all};
use mimalloc::MiMalloc;
use parking_lot::Mutex;
use serde::Deserialize;

use copies::{Copies, duration, since};
use plan::{Kind, Plan};
use record::{Record, Run, hash_of};

/// As in the binary: a third of the CPU time of a run was spent in small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Options as JSON in the only argument: see `cargo xtask simulate --help`.
#[derive(Debug, Deserialize)]
struct Options {
    only: Vec<String>,
    every: usize,
    offset: usize,
    effects: Vec<usize>,
    faults: Vec<Kind>,
    calm: bool,
    jobs: Option<usize>,
    broken: PathBuf,
    record: PathBuf,
    again: bool,
    seed: u64,
}

/// The run of a scenario without faults.
struct Reference {
    exposed: std::ops::Range<usize>,
    world: u64,
}

/// Results of a scenario.
struct Row {
    scenario: &'static str,
    effects: usize,
    runs: Vec<(Kind, usize, usize)>,
    /// Mean CPU seconds per run.
    cpu: f64,
}

fn main() -> Result<()> {
    let options = std::env::args().nth(1).context("no options: run `cargo xtask simulate`")?;
    let options: Options = serde_json::from_str(&options).context("the options")?;
    let scenarios: Vec<ClusterScenario> = all()
        .into_iter()
        .filter(|scenario| options.only.is_empty() || options.only.iter().any(|name| name == scenario.name))
        .collect();
    ensure!(!scenarios.is_empty(), "no scenario with these names: {}", options.only.join(", "));
    let references = references(&scenarios, options.seed)?;
    if options.calm {
        return Ok(());
    }
    with_faults(&scenarios, &references, options)
}

/// Runs every scenario once without faults and reports failures.
fn references(scenarios: &[ClusterScenario], seed: u64) -> Result<Vec<Reference>> {
    // A code change may show only after a fault, with an unchanged run without faults: so the program is part of the
    // hash.
    let program = std::env::current_exe().and_then(std::fs::read).context("read this program")?;
    let program = hash_of(program);
    let (mut references, mut failed) = (Vec::new(), Vec::new());
    for scenario in scenarios {
        let begun = Instant::now();
        let report = run(scenario, seed, &[]);
        let took = begun.elapsed().as_secs_f64();
        let outcome = match &report.violation {
            None => "passed".to_owned(),
            Some(violation) => {
                eprintln!("{}", report.transcript());
                failed.push(scenario.name);
                violation.to_string()
            }
        };
        println!("{}: {} effects, {took:.1} s: {outcome}", scenario.name, report.trace.effects());
        let exposed = report.trace.faults_from()..report.trace.effects();
        references.push(Reference { exposed, world: hash_of((program, report.trace.text())) });
    }
    ensure!(failed.is_empty(), "these scenarios fail: {}", failed.join(", "));
    Ok(references)
}

/// Prints the progress now and then.
struct Progress {
    begun: Instant,
    printed: Mutex<Instant>,
    planned: usize,
    runs: AtomicUsize,
    broken: AtomicUsize,
    cpu: AtomicU64,
}

impl Progress {
    fn ended(&self, run: &Run, effects: usize) {
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let broken = self.broken.fetch_add(usize::from(run.broken.is_some()), Ordering::Relaxed);
        let broken = broken + usize::from(run.broken.is_some());
        let cpu = self.cpu.fetch_add(run.cpu, Ordering::Relaxed) + run.cpu;
        let mut printed = self.printed.lock();
        if printed.elapsed().as_secs() >= 15 {
            *printed = Instant::now();
            let rate = runs as f64 / self.begun.elapsed().as_secs_f64();
            let left = self.planned.saturating_sub(runs) as f64 / rate;
            eprintln!(
                "{}, {} {} of {effects}: {runs} of {} runs, {broken} failed, {:.1} s of CPU time each, about {} left",
                run.scenario,
                run.kind.name(),
                run.effect,
                self.planned,
                cpu as f64 / 1000.0 / runs as f64,
                duration(left as u64)
            );
        }
    }
}

fn with_faults(scenarios: &[ClusterScenario], references: &[Reference], options: Options) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plan = Plan {
        kinds: if options.faults.is_empty() { Kind::ALL.to_vec() } else { options.faults },
        every: options.every.max(1),
        offset: options.offset,
        effects: options.effects,
        jobs: options.jobs.unwrap_or(processors).max(1),
    };
    std::fs::create_dir_all(&options.broken).with_context(|| options.broken.display().to_string())?;
    let record = Arc::new(Record::open(&options.record)?);
    // Effects that are named explicitly run again.
    let again = options.again || !plan.effects.is_empty();
    let passed: Vec<Vec<Run>> = scenarios
        .iter()
        .zip(references)
        .map(|(scenario, reference)| {
            let passed = if again { Vec::new() } else { record.passed(scenario.name, reference.world) };
            let planned = |run: &Run| plan.faults(run.effect).contains(&run.kind.at(run.effect));
            passed.into_iter().filter(planned).collect()
        })
        .collect();
    let planned: usize = references.iter().map(|reference| plan.runs(reference.exposed.clone())).sum();
    let progress = Arc::new(Progress {
        begun: Instant::now(),
        printed: Mutex::new(Instant::now()),
        planned: planned.saturating_sub(passed.iter().map(Vec::len).sum()),
        runs: AtomicUsize::new(0),
        broken: AtomicUsize::new(0),
        cpu: AtomicU64::new(0),
    });
    let mut rows = Vec::new();
    for ((scenario, reference), passed) in scenarios.iter().zip(references).zip(passed) {
        let (teller, recorder) = (progress.clone(), record.clone());
        let (name, effects) = (scenario.name, reference.exposed.end);
        let ended = move |run: &Run| {
            teller.ended(run, effects);
            if let Some(what) = &run.broken {
                println!("{name}, {}: {what}", run.kind.at(run.effect));
            }
            recorder.add(run)
        };
        let copies = Arc::new(Copies::new(
            name,
            reference.world,
            plan.clone(),
            &passed,
            options.broken.clone(),
            ended,
        ));
        copies.end_if_copy(run_with(scenario, options.seed, copies.clone()));
        let mut runs = copies.end()?;
        runs.extend(passed);
        rows.push(row(&plan, name, reference.exposed.len(), &runs));
        print(&plan, &rows[rows.len() - 1..], rows.len() == 1);
    }
    println!();
    print(&plan, &rows, true);
    let of_all = |count: fn(&(Kind, usize, usize)) -> usize| -> usize {
        rows.iter().flat_map(|row| &row.runs).map(count).sum()
    };
    let (runs, broken) = (of_all(|(_, runs, _)| *runs), of_all(|(_, _, broken)| *broken));
    println!(
        "{runs} runs of {} scenarios, {broken} failed; {} of them now, {}",
        rows.len(),
        progress.runs.load(Ordering::Relaxed),
        since(progress.begun)
    );
    ensure!(broken == 0, "{broken} of {runs} runs failed");
    Ok(())
}

fn row(plan: &Plan, scenario: &'static str, effects: usize, runs: &[Run]) -> Row {
    let count = |kind: Kind| {
        let of_kind = || runs.iter().filter(move |run| run.kind == kind);
        (kind, of_kind().count(), of_kind().filter(|run| run.broken.is_some()).count())
    };
    let cpu: u64 = runs.iter().map(|run| run.cpu).sum();
    let cpu = cpu as f64 / 1000.0 / runs.len().max(1) as f64;
    Row { scenario, effects, runs: plan.kinds.iter().map(|kind| count(*kind)).collect(), cpu }
}

/// Prints the table: runs and, after a slash, failed ones; then CPU seconds per run.
fn print(plan: &Plan, rows: &[Row], head: bool) {
    if head {
        let kinds: String = plan.kinds.iter().map(|kind| format!("{:>15}", kind.name())).collect();
        println!("{:<20}{:>8}{kinds}{:>10}", "scenario", "effects", "s/run");
    }
    for row in rows {
        let runs: String = row
            .runs
            .iter()
            .map(|(_, runs, broken)| format!("{:>15}", format!("{runs} / {broken}")))
            .collect();
        println!("{:<20}{:>8}{runs}{:>10.2}", row.scenario, row.effects, row.cpu);
    }
}
