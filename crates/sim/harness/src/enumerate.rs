//! Runs of a scenario: one, or one for every effect and fault.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::gate::Observers;
use crate::world::Assembly;
use crate::{Clock, Fault, FaultPlan, Scenario, Trace, Violation, World};

/// Result of a run.
pub struct Report {
    pub seed: u64,
    pub faults: Vec<Fault>,
    pub trace: Trace,
    /// The first violated property; it ends the run.
    pub violation: Option<Violation>,
}

impl Report {
    /// Everything needed to reproduce the run: seed, faults, violation and trace.
    pub fn transcript(&self) -> String {
        let mut text = format!("seed {}", self.seed);
        for fault in &self.faults {
            let _ = write!(text, ", {fault}");
        }
        if let Some(violation) = &self.violation {
            let _ = write!(text, "\n{violation}");
        }
        let _ = write!(text, "\n{}", self.trace.text());
        text
    }
}

/// Runs a scenario once.
pub fn run<S: Scenario>(scenario: &S, seed: u64, faults: &[Fault]) -> Report {
    let report = run_with(scenario, seed, Arc::new(faults.to_vec()));
    Report { faults: faults.to_vec(), ..report }
}

/// Runs a scenario once with faults from a plan.
pub fn run_with<S: Scenario>(scenario: &S, seed: u64, plan: Arc<dyn FaultPlan>) -> Report {
    let trace = Trace::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| Violation::new("boot", format!("no Tokio runtime: {error}")));
    let violation = match runtime {
        Ok(runtime) => runtime.block_on(run_scenario(scenario, seed, plan, trace.clone())).err(),
        Err(violation) => Some(violation),
    };
    Report { seed, faults: Vec::new(), trace, violation }
}

async fn run_scenario<S: Scenario>(
    scenario: &S,
    seed: u64,
    plan: Arc<dyn FaultPlan>,
    trace: Trace,
) -> Result<(), Violation> {
    let clock = Clock::begin(scenario.start_time());
    let outside = scenario.outside(&clock.env(!seed));
    let observers = Arc::new(Observers {
        clock,
        trace,
        plan,
        injected: AtomicBool::new(false),
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
    scenario.run(&mut world, &outside).await
}

/// The effects that get a fault: every nth of those with faults enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Index of the first one, among those with faults enabled.
    pub first: usize,
    /// Step; 1 for all.
    pub every: usize,
}

impl Sample {
    pub const ALL: Self = Self { first: 0, every: 1 };
}

/// Result of running a scenario once per effect and fault.
pub struct FaultRuns {
    /// The run without faults.
    pub reference: Report,
    /// Number of runs with a fault.
    pub runs: usize,
    /// Runs in which a property was violated.
    pub broken: Vec<Report>,
}

/// Runs a scenario without faults, then once for every effect and every fault in `faults`. Returns the reference run
/// and the runs in which a property was violated.
pub fn crash_points<S: Scenario>(
    scenario: &S,
    seed: u64,
    faults: &[fn(usize) -> Fault],
) -> (Report, Vec<Report>) {
    let runs = inject_faults(scenario, seed, faults, Sample::ALL);
    (runs.reference, runs.broken)
}

/// Like [`crash_points`], for a sample of the effects.
pub fn inject_faults<S: Scenario>(
    scenario: &S,
    seed: u64,
    faults: &[fn(usize) -> Fault],
    sample: Sample,
) -> FaultRuns {
    let reference = run(scenario, seed, &[]);
    let mut runs = FaultRuns { reference, runs: 0, broken: Vec::new() };
    if runs.reference.violation.is_none() {
        let first = runs.reference.trace.faults_from() + sample.first;
        for effect in (first..runs.reference.trace.effects()).step_by(sample.every.max(1)) {
            for fault in faults {
                let report = run(scenario, seed, &[fault(effect)]);
                runs.runs += 1;
                if report.violation.is_some() {
                    runs.broken.push(report);
                }
            }
        }
    }
    runs
}
