//! Plays the stories of whole clusters in simulated time and disturbs them at every effect: what `cargo xtask
//! simulate` runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

mod copies;
mod plan;
mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{run, run_with};
use capstan_scenarios::{Story, all};
use mimalloc::MiMalloc;
use parking_lot::Mutex;
use serde::Deserialize;

use copies::{Copies, for_people, since};
use plan::{Kind, Plan};
use record::{Record, Run, in_short};

/// As in the binary: a third of the time of a run went into small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How much is simulated, as JSON in the only argument: `cargo xtask simulate --help` tells what it all means.
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

/// What a story is like when nothing disturbs it.
struct Calm {
    exposed: std::ops::Range<usize>,
    world: u64,
}

/// What came of a story.
struct Row {
    story: &'static str,
    effects: usize,
    runs: Vec<(Kind, usize, usize)>,
    /// Seconds of processor time, on average.
    cpu: f64,
}

fn main() -> Result<()> {
    let options = std::env::args().nth(1).context("no options: run `cargo xtask simulate`")?;
    let options: Options = serde_json::from_str(&options).context("the options")?;
    let stories: Vec<Story> = all()
        .into_iter()
        .filter(|story| options.only.is_empty() || options.only.iter().any(|name| name == story.name))
        .collect();
    ensure!(!stories.is_empty(), "there is no story of these names: {}", options.only.join(", "));
    let calm = calm(&stories, options.seed)?;
    if options.calm {
        return Ok(());
    }
    disturbed(&stories, &calm, options)
}

/// Every story once, and every failure told.
fn calm(stories: &[Story], seed: u64) -> Result<Vec<Calm>> {
    // A change that shows only after a misfortune leaves the undisturbed run as it was: the program counts as well.
    let program = std::env::current_exe().and_then(std::fs::read).context("read this program")?;
    let program = in_short(program);
    let (mut calm, mut failed) = (Vec::new(), Vec::new());
    for story in stories {
        let begun = Instant::now();
        let report = run(story, seed, &[]);
        let took = begun.elapsed().as_secs_f64();
        let verdict = match &report.violation {
            None => "all is well".to_owned(),
            Some(violation) => {
                eprintln!("{}", report.story());
                failed.push(story.name);
                violation.to_string()
            }
        };
        println!("{}: {} effects, {took:.1} s: {verdict}", story.name, report.trace.effects());
        let exposed = report.trace.exposed()..report.trace.effects();
        calm.push(Calm { exposed, world: in_short((program, report.trace.text())) });
    }
    ensure!(failed.is_empty(), "these stories do not end well: {}", failed.join(", "));
    Ok(calm)
}

/// How far it is, told now and then.
struct Progress {
    begun: Instant,
    told: Mutex<Instant>,
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
        let mut told = self.told.lock();
        if told.elapsed().as_secs() >= 15 {
            *told = Instant::now();
            let rate = runs as f64 / self.begun.elapsed().as_secs_f64();
            let left = self.planned.saturating_sub(runs) as f64 / rate;
            eprintln!(
                "{}, {} {} of {effects}: {runs} of {} runs, {broken} broken, {:.1} s of processor time each, about {} left",
                run.story,
                run.kind.name(),
                run.effect,
                self.planned,
                cpu as f64 / 1000.0 / runs as f64,
                for_people(left as u64)
            );
        }
    }
}

fn disturbed(stories: &[Story], calm: &[Calm], options: Options) -> Result<()> {
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
    // What somebody asks for by number is to be seen again.
    let again = options.again || !plan.effects.is_empty();
    let held: Vec<Vec<Run>> = stories
        .iter()
        .zip(calm)
        .map(|(story, calm)| {
            let held = if again { Vec::new() } else { record.held(story.name, calm.world) };
            let planned = |run: &Run| plan.faults(run.effect).contains(&run.kind.at(run.effect));
            held.into_iter().filter(planned).collect()
        })
        .collect();
    let planned: usize = calm.iter().map(|calm| plan.runs(calm.exposed.clone())).sum();
    let progress = Arc::new(Progress {
        begun: Instant::now(),
        told: Mutex::new(Instant::now()),
        planned: planned.saturating_sub(held.iter().map(Vec::len).sum()),
        runs: AtomicUsize::new(0),
        broken: AtomicUsize::new(0),
        cpu: AtomicU64::new(0),
    });
    let mut rows = Vec::new();
    for ((story, calm), held) in stories.iter().zip(calm).zip(held) {
        let (teller, recorder) = (progress.clone(), record.clone());
        let (name, effects) = (story.name, calm.exposed.end);
        let ended = move |run: &Run| {
            teller.ended(run, effects);
            if let Some(what) = &run.broken {
                println!("{name}, {}: {what}", run.kind.at(run.effect));
            }
            recorder.add(run)
        };
        let copies =
            Arc::new(Copies::new(name, calm.world, plan.clone(), &held, options.broken.clone(), ended));
        copies.end_if_copy(run_with(story, options.seed, copies.clone()));
        let mut runs = copies.end()?;
        runs.extend(held);
        rows.push(row(&plan, name, calm.exposed.len(), &runs));
        print(&plan, &rows[rows.len() - 1..], rows.len() == 1);
    }
    println!();
    print(&plan, &rows, true);
    let of_all = |count: fn(&(Kind, usize, usize)) -> usize| -> usize {
        rows.iter().flat_map(|row| &row.runs).map(count).sum()
    };
    let (runs, broken) = (of_all(|(_, runs, _)| *runs), of_all(|(_, _, broken)| *broken));
    println!(
        "{runs} runs of {} stories, {broken} broken; {} of them now, {}",
        rows.len(),
        progress.runs.load(Ordering::Relaxed),
        since(progress.begun)
    );
    ensure!(broken == 0, "{broken} of {runs} runs broke something");
    Ok(())
}

fn row(plan: &Plan, story: &'static str, effects: usize, runs: &[Run]) -> Row {
    let count = |kind: Kind| {
        let of_kind = || runs.iter().filter(move |run| run.kind == kind);
        (kind, of_kind().count(), of_kind().filter(|run| run.broken.is_some()).count())
    };
    let cpu: u64 = runs.iter().map(|run| run.cpu).sum();
    let cpu = cpu as f64 / 1000.0 / runs.len().max(1) as f64;
    Row { story, effects, runs: plan.kinds.iter().map(|kind| count(*kind)).collect(), cpu }
}

/// A table: runs and, after a slash, broken ones; then seconds of processor time of one run.
fn print(plan: &Plan, rows: &[Row], head: bool) {
    if head {
        let kinds: String = plan.kinds.iter().map(|kind| format!("{:>15}", kind.name())).collect();
        println!("{:<20}{:>8}{kinds}{:>10}", "story", "effects", "s/run");
    }
    for row in rows {
        let runs: String = row
            .runs
            .iter()
            .map(|(_, runs, broken)| format!("{:>15}", format!("{runs} / {broken}")))
            .collect();
        println!("{:<20}{:>8}{runs}{:>10.2}", row.story, row.effects, row.cpu);
    }
}
