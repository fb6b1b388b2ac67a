//! Runs: one, or one for every point where a process can die or an answer can be lost.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::gate::Observers;
use crate::world::Assembly;
use crate::{Clock, Fault, Misfortune, Scenario, Trace, Violation, World};

/// What came of a run.
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What went wrong on purpose.
    pub faults: Vec<Fault>,
    /// What happened.
    pub trace: Trace,
    /// What did not hold; the first one ends the run.
    pub violation: Option<Violation>,
}

impl Report {
    /// How to see it again: seed, faults, and the trace.
    pub fn story(&self) -> String {
        let mut story = format!("seed {}", self.seed);
        for fault in &self.faults {
            let _ = write!(story, ", {fault}");
        }
        if let Some(violation) = &self.violation {
            let _ = write!(story, "\n{violation}");
        }
        let _ = write!(story, "\n{}", self.trace.text());
        story
    }
}

/// Plays a scenario once.
pub fn run<S: Scenario>(scenario: &S, seed: u64, faults: &[Fault]) -> Report {
    let report = run_with(scenario, seed, Arc::new(faults.to_vec()));
    Report { faults: faults.to_vec(), ..report }
}

/// Plays a scenario once, with whatever misfortune there is.
pub fn run_with<S: Scenario>(scenario: &S, seed: u64, misfortune: Arc<dyn Misfortune>) -> Report {
    let trace = Trace::default();
    let played = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| Violation::new("boot", format!("no Tokio runtime: {error}")));
    let violation = match played {
        Ok(runtime) => runtime.block_on(play(scenario, seed, misfortune, trace.clone())).err(),
        Err(violation) => Some(violation),
    };
    Report { seed, faults: Vec::new(), trace, violation }
}

async fn play<S: Scenario>(
    scenario: &S,
    seed: u64,
    misfortune: Arc<dyn Misfortune>,
    trace: Trace,
) -> Result<(), Violation> {
    let clock = Clock::begin(scenario.begins());
    let outside = scenario.outside(&clock.env(!seed));
    let observers = Arc::new(Observers {
        clock,
        trace,
        misfortune,
        struck: AtomicBool::new(false),
        checkers: Mutex::new(scenario.checkers(&outside)),
        violations: Mutex::default(),
        crashed: Notify::new(),
        cuts: watch::Sender::new(0),
    });
    let (inside, beyond) = (outside.clone(), outside.clone());
    let assembly = Assembly {
        store: Box::new(|disk, options| scenario.store(disk, options)),
        transport: Box::new(|direct| scenario.transport(direct)),
        configure: Box::new(|config| scenario.configure(config)),
        workloads: Box::new(move |management, env| scenario.workloads(&beyond, management, env)),
        controllers: Box::new(move |runtime| scenario.controllers(&inside, runtime)),
    };
    let mut world = World::new(seed, scenario.options(), assembly, observers);
    world.boot().await?;
    scenario.prepare(&world).await?;
    world.start();
    scenario.play(&mut world, &outside).await
}

/// Which effects are disturbed: from the first on that the scenario exposes, every so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The first one, counted from the first that is exposed.
    pub first: usize,
    /// From one to the next; 1 for all.
    pub every: usize,
}

impl Sample {
    /// Every effect.
    pub const ALL: Self = Self { first: 0, every: 1 };
}

/// What came of disturbing a scenario.
pub struct Survey {
    /// The run without faults.
    pub reference: Report,
    /// Runs with a fault.
    pub runs: usize,
    /// Those in which something did not hold.
    pub broken: Vec<Report>,
}

/// Plays a scenario without faults, then once for every effect it had and every fault of `faults` at that effect.
/// The answer is the reference run and the runs in which something did not hold.
pub fn crash_points<S: Scenario>(
    scenario: &S,
    seed: u64,
    faults: &[fn(usize) -> Fault],
) -> (Report, Vec<Report>) {
    let survey = survey(scenario, seed, faults, Sample::ALL);
    (survey.reference, survey.broken)
}

/// The same for some of the effects.
pub fn survey<S: Scenario>(scenario: &S, seed: u64, faults: &[fn(usize) -> Fault], sample: Sample) -> Survey {
    let reference = run(scenario, seed, &[]);
    let mut survey = Survey { reference, runs: 0, broken: Vec::new() };
    if survey.reference.violation.is_none() {
        let first = survey.reference.trace.exposed() + sample.first;
        for effect in (first..survey.reference.trace.effects()).step_by(sample.every.max(1)) {
            for fault in faults {
                let report = run(scenario, seed, &[fault(effect)]);
                survey.runs += 1;
                if report.violation.is_some() {
                    survey.broken.push(report);
                }
            }
        }
    }
    survey
}
