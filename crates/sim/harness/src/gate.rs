//! The gate that every effect of a process passes: numbered, checked, recorded, and disturbed by faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_controller::{ApiError, EffectOf, Gate, GateVerdict, KindName, ObjectRef, TransportError};
use capstan_object::Key;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::check::{Checker, Step};
use crate::watch_tap::{Collection, WatchEvent};
use crate::{Clock, Fault, FaultPlan, Objects, Trace, Violation};

/// What the processes of a world have in common: clock, trace, faults and checkers.
pub(crate) struct Observers {
    pub clock: Clock,
    pub trace: Trace,
    pub plan: Arc<dyn FaultPlan>,
    pub injected: AtomicBool,
    pub checkers: Mutex<Vec<Box<dyn Checker>>>,
    pub violations: Mutex<Vec<Violation>>,
    /// Notified when the process has died or a property was violated.
    pub crashed: Notify,
    /// Incremented when all watches break.
    pub cuts: watch::Sender<u64>,
}

impl Observers {
    pub fn check(&self, mut ask: impl FnMut(&mut dyn Checker) -> Result<(), String>) {
        for checker in self.checkers.lock().iter_mut() {
            if let Err(what) = ask(&mut **checker) {
                let violation = Violation::new(checker.name(), what);
                self.trace.line(self.clock.seconds(), &format!("VIOLATION {violation}"));
                self.violations.lock().push(violation);
                // Ends the wait for simulated time.
                self.crashed.notify_one();
            }
        }
    }
}

pub(crate) struct SimGate {
    pub observers: Arc<Observers>,
    pub objects: Objects,
    dead: AtomicBool,
    under_way: Mutex<Vec<UnderWay>>,
}

/// An effect in progress.
struct UnderWay {
    description: String,
    number: usize,
    faults: Vec<Fault>,
}

impl SimGate {
    pub fn new(observers: Arc<Observers>, objects: Objects) -> Self {
        Self { observers, objects, dead: AtomicBool::new(false), under_way: Mutex::default() }
    }

    /// From here on no effect passes.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Called before an effect, in the management cluster or in a workload cluster.
    async fn enter(&self, actor: &str, effect: &EffectOf<'_>, workload: bool) -> GateVerdict {
        if self.dead.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let number = self.observers.trace.number();
        let faults = self.observers.plan.faults_at(number);
        if !faults.is_empty() {
            self.observers.injected.store(true, Ordering::Relaxed);
        }
        for fault in &faults {
            match fault {
                Fault::CrashBefore(_) => return self.die(number).await,
                Fault::Delay(_, time) => tokio::time::sleep(*time).await,
                Fault::Refuse(_, code) => {
                    let error = ApiError::status(*code, reason(*code), "refused by the simulation");
                    self.observers.trace.effect(
                        self.observers.clock.seconds(),
                        number,
                        actor,
                        effect,
                        "REFUSED",
                    );
                    return GateVerdict::Fail(error);
                }
                _ => {}
            }
        }
        let description = described(actor, effect, workload);
        self.under_way.lock().push(UnderWay { description, number, faults });
        let mut step = self.step(number, actor, effect, Ok(b""));
        step.workload = workload;
        self.observers.check(|checker| checker.before(&step, &self.objects));
        GateVerdict::Proceed
    }

    /// Called after an effect, failed or not.
    async fn leave(
        &self,
        actor: &str,
        effect: &EffectOf<'_>,
        result: Result<&[u8], &ApiError>,
        workload: bool,
    ) -> GateVerdict {
        if self.dead.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let description = described(actor, effect, workload);
        let (number, faults) = {
            let mut under_way = self.under_way.lock();
            let at = under_way.iter().position(|known| known.description == description);
            let begun = at.map(|at| under_way.remove(at));
            begun.map_or((usize::MAX, Vec::new()), |begun| (begun.number, begun.faults))
        };
        let outcome = match &result {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        let actor_name = if workload { format!("{actor} in workload") } else { actor.to_owned() };
        self.observers.trace.effect(self.observers.clock.seconds(), number, &actor_name, effect, &outcome);
        let lost = faults.contains(&Fault::LoseReply(number));
        let crashes = faults.contains(&Fault::CrashAfter(number));
        let mut step = self.step(number, actor, effect, result);
        step.workload = workload;
        let no_response = ApiError::Transport(TransportError::ambiguous("the response was lost"));
        if lost || crashes {
            // The effect happened but was not acknowledged: it does not count for acknowledged writes.
            step.result = Err(&no_response);
        }
        self.observers.check(|checker| checker.after(&step, &self.objects));
        if crashes {
            return self.die(number).await;
        }
        if faults.contains(&Fault::CutWatches(number)) {
            self.observers.trace.line(self.observers.clock.seconds(), "WATCHES CUT");
            self.observers.cuts.send_modify(|cut| *cut += 1);
        }
        if lost {
            self.observers.trace.line(self.observers.clock.seconds(), &format!("RESPONSE LOST of #{number}"));
            return GateVerdict::Fail(no_response);
        }
        GateVerdict::Proceed
    }

    /// Reports a watch event to the checkers.
    pub fn watch_event(&self, watch: u64, collection: &Collection, event: &WatchEvent) {
        if !self.dead.load(Ordering::Relaxed) {
            self.observers.check(|checker| checker.watch_event(watch, collection, event, &self.objects));
        }
    }

    async fn die(&self, number: usize) -> GateVerdict {
        self.observers.trace.line(self.observers.clock.seconds(), &format!("CRASH at #{number}"));
        self.kill();
        self.observers.crashed.notify_one();
        std::future::pending().await
    }

    fn step<'a>(
        &self,
        number: usize,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> Step<'a> {
        Step { number, at: self.observers.clock.now(), actor, effect, result, workload: false }
    }
}

/// Identifies an effect between `enter` and `leave`.
fn described(actor: &str, effect: &EffectOf<'_>, workload: bool) -> String {
    format!("{workload} {actor} {effect}")
}

impl Gate for SimGate {
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, GateVerdict> {
        Box::pin(self.enter(actor, effect, false))
    }

    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, GateVerdict> {
        Box::pin(self.leave(actor, effect, result, false))
    }

    fn read(&self, actor: &str, kind: &KindName, key: &Key, version: u64) {
        if !self.dead.load(Ordering::Relaxed) {
            self.observers.check(|checker| checker.read(actor, kind, key, version));
        }
    }

    fn decided(&self, actor: &str, object: &ObjectRef, read: &[(KindName, Key, u64)]) {
        if !self.dead.load(Ordering::Relaxed) {
            self.observers.check(|checker| checker.decided(actor, object, read));
        }
    }
}

/// The gate of one process for workload clusters: same numbers and faults, other objects.
pub(crate) struct WorkloadGate(pub Arc<SimGate>);

impl Gate for WorkloadGate {
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, GateVerdict> {
        Box::pin(self.0.enter(actor, effect, true))
    }

    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, GateVerdict> {
        Box::pin(self.0.leave(actor, effect, result, true))
    }
}

fn reason(code: u16) -> &'static str {
    match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}
