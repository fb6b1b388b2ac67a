//! Plays the stories of whole clusters in simulated time and disturbs them at every effect: what `cargo xtask
//! simulate` runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

mod copies;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{Fault, run, run_with};
use capstan_scenarios::{Story, all};
use parking_lot::Mutex;
use serde::Deserialize;

use copies::{Copies, for_people, since};
use plan::{Kind, Plan};

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
    seed: u64,
}

/// What came of a story.
struct Row {
    story: &'static str,
    effects: usize,
    runs: Vec<(Kind, usize, usize)>,
    took: String,
}

fn main() -> Result<()> {
    let options = std::env::args().nth(1).context("no options: run `cargo xtask simulate`")?;
    let options: Options = serde_json::from_str(&options).context("the options")?;
    let stories: Vec<Story> = all()
        .into_iter()
        .filter(|story| options.only.is_empty() || options.only.iter().any(|name| name == story.name))
        .collect();
    ensure!(!stories.is_empty(), "there is no story of these names: {}", options.only.join(", "));
    let exposed = calm(&stories, options.seed)?;
    if options.calm {
        return Ok(());
    }
    disturbed(&stories, &exposed, options)
}

/// Every story once, and every failure told. The answer: the effects that each of them exposes.
fn calm(stories: &[Story], seed: u64) -> Result<Vec<std::ops::Range<usize>>> {
    let (mut exposed, mut failed) = (Vec::new(), Vec::new());
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
        exposed.push(report.trace.exposed()..report.trace.effects());
    }
    ensure!(failed.is_empty(), "these stories do not end well: {}", failed.join(", "));
    Ok(exposed)
}

/// How far it is, told now and then.
struct Progress {
    begun: Instant,
    told: Mutex<Instant>,
    planned: usize,
    runs: AtomicUsize,
    broken: AtomicUsize,
}

impl Progress {
    fn ended(&self, story: &str, broken: bool) {
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let broken = self.broken.fetch_add(usize::from(broken), Ordering::Relaxed) + usize::from(broken);
        let mut told = self.told.lock();
        if told.elapsed().as_secs() >= 15 {
            *told = Instant::now();
            let rate = runs as f64 / self.begun.elapsed().as_secs_f64();
            let left = self.planned.saturating_sub(runs) as f64 / rate;
            eprintln!(
                "{story}: {runs} of {} runs, {rate:.1} in a second, {broken} broken, about {} left",
                self.planned,
                for_people(left as u64)
            );
        }
    }
}

fn disturbed(stories: &[Story], exposed: &[std::ops::Range<usize>], options: Options) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plan = Plan {
        kinds: if options.faults.is_empty() { Kind::ALL.to_vec() } else { options.faults },
        every: options.every.max(1),
        offset: options.offset,
        effects: options.effects,
        jobs: options.jobs.unwrap_or(processors).max(1),
    };
    std::fs::create_dir_all(&options.broken).with_context(|| options.broken.display().to_string())?;
    let progress = Arc::new(Progress {
        begun: Instant::now(),
        told: Mutex::new(Instant::now()),
        planned: exposed.iter().map(|effects| plan.runs(effects.clone())).sum(),
        runs: AtomicUsize::new(0),
        broken: AtomicUsize::new(0),
    });
    let mut rows = Vec::new();
    for (story, exposed) in stories.iter().zip(exposed) {
        let begun = Instant::now();
        let teller = progress.clone();
        let name = story.name;
        let copies = Arc::new(Copies::new(name, plan.clone(), options.broken.clone(), move |broken| {
            teller.ended(name, broken);
        }));
        copies.end_if_copy(run_with(story, options.seed, copies.clone()));
        let outcomes = copies.end()?;
        for (fault, broken) in &outcomes {
            if let Some(what) = broken {
                println!("{name}, {fault}: {what}");
            }
        }
        rows.push(Row {
            story: name,
            effects: exposed.len(),
            runs: count(&plan, &outcomes),
            took: since(begun),
        });
        print(&plan, &rows[rows.len() - 1..], rows.len() == 1);
    }
    let (runs, broken) = (progress.runs.load(Ordering::Relaxed), progress.broken.load(Ordering::Relaxed));
    println!();
    print(&plan, &rows, true);
    println!("{runs} runs of {} stories, {broken} broken, {}", rows.len(), since(progress.begun));
    ensure!(broken == 0, "{broken} of {runs} runs broke something");
    Ok(())
}

fn count(plan: &Plan, outcomes: &[(Fault, Option<String>)]) -> Vec<(Kind, usize, usize)> {
    let of = |kind: Kind| outcomes.iter().filter(move |(fault, _)| Kind::of(fault) == Some(kind));
    let broken = |kind| of(kind).filter(|(_, broken)| broken.is_some()).count();
    plan.kinds.iter().map(|kind| (*kind, of(*kind).count(), broken(*kind))).collect()
}

/// A table: runs and, after a slash, broken ones.
fn print(plan: &Plan, rows: &[Row], head: bool) {
    if head {
        let kinds: String = plan.kinds.iter().map(|kind| format!("{:>15}", kind.name())).collect();
        println!("{:<20}{:>8}{kinds}{:>10}", "story", "effects", "took");
    }
    for row in rows {
        let runs: String = row
            .runs
            .iter()
            .map(|(_, runs, broken)| format!("{:>15}", format!("{runs} / {broken}")))
            .collect();
        println!("{:<20}{:>8}{runs}{:>10}", row.story, row.effects, row.took);
    }
}
