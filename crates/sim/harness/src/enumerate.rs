//! Runs: one, or one for every point where a process can die or an answer can be lost.

use std::fmt::Write;
use std::sync::Arc;

use capstan_controller::Runtime;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::gate::Observers;
use crate::{Clock, Fault, Scenario, Trace, Violation, World};

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
    let trace = Trace::default();
    let played = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| Violation::new("boot", format!("no Tokio runtime: {error}")));
    let violation = match played {
        Ok(runtime) => runtime.block_on(play(scenario, seed, faults, trace.clone())).err(),
        Err(violation) => Some(violation),
    };
    Report { seed, faults: faults.to_vec(), trace, violation }
}

async fn play<S: Scenario>(scenario: &S, seed: u64, faults: &[Fault], trace: Trace) -> Result<(), Violation> {
    let clock = Clock::begin();
    let outside = scenario.outside(&clock.env(!seed));
    let observers = Arc::new(Observers {
        clock,
        trace,
        faults: faults.to_vec(),
        checkers: Mutex::new(scenario.checkers(&outside)),
        violations: Mutex::default(),
        crashed: Notify::new(),
        cuts: watch::Sender::new(0),
    });
    let inside = outside.clone();
    let assemble = Box::new(move |runtime: &mut Runtime| scenario.controllers(&inside, runtime));
    let mut world = World::new(seed, scenario.options(), assemble, observers);
    world.boot().await?;
    scenario.prepare(&world).await?;
    world.start();
    scenario.play(&mut world, &outside).await
}

/// Plays a scenario without faults, then once for every effect it had and every fault of `faults` at that effect.
/// The answer is the reference run and the runs in which something did not hold.
pub fn crash_points<S: Scenario>(
    scenario: &S,
    seed: u64,
    faults: &[fn(usize) -> Fault],
) -> (Report, Vec<Report>) {
    let reference = run(scenario, seed, &[]);
    let mut broken = Vec::new();
    if reference.violation.is_none() {
        for effect in 0..reference.trace.effects() {
            for fault in faults {
                let report = run(scenario, seed, &[fault(effect)]);
                if report.violation.is_some() {
                    broken.push(report);
                }
            }
        }
    }
    (reference, broken)
}
