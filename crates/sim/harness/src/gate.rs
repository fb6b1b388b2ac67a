//! The one place where every effect of a process passes: numbered, checked, recorded, disturbed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_controller::{ApiError, EffectOf, Gate, KindName, ObjectRef, TransportError, Verdict};
use capstan_object::Key;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::check::{Checker, Step};
use crate::wire::{Collection, Told};
use crate::{Clock, Fault, Misfortune, Objects, Trace, Violation};

/// What all processes of a world share.
pub(crate) struct Observers {
    pub clock: Clock,
    pub trace: Trace,
    pub misfortune: Arc<dyn Misfortune>,
    /// Something has gone wrong on purpose.
    pub struck: AtomicBool,
    pub checkers: Mutex<Vec<Box<dyn Checker>>>,
    pub violations: Mutex<Vec<Violation>>,
    /// Rung when the process has died or something does not hold.
    pub crashed: Notify,
    /// Changes when all watches break.
    pub cuts: watch::Sender<u64>,
}

impl Observers {
    pub fn check(&self, mut ask: impl FnMut(&mut dyn Checker) -> Result<(), String>) {
        for checker in self.checkers.lock().iter_mut() {
            if let Err(what) = ask(&mut **checker) {
                let violation = Violation::new(checker.name(), what);
                self.trace.line(self.clock.seconds(), &format!("VIOLATION {violation}"));
                self.violations.lock().push(violation);
                // Whoever waits for time to pass need not wait any longer.
                self.crashed.notify_one();
            }
        }
    }
}

/// The gate of one process.
pub(crate) struct SimGate {
    pub shared: Arc<Observers>,
    pub objects: Objects,
    dead: AtomicBool,
    under_way: Mutex<Vec<UnderWay>>,
}

/// An effect that has begun.
struct UnderWay {
    description: String,
    number: usize,
    faults: Vec<Fault>,
}

impl SimGate {
    pub fn new(shared: Arc<Observers>, objects: Objects) -> Self {
        Self { shared, objects, dead: AtomicBool::new(false), under_way: Mutex::default() }
    }

    /// Nothing passes any more.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// An effect is about to happen, here or in a workload cluster.
    async fn enter(&self, actor: &str, effect: &EffectOf<'_>, workload: bool) -> Verdict {
        if self.dead.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let number = self.shared.trace.number();
        let faults = self.shared.misfortune.strike(number);
        if !faults.is_empty() {
            self.shared.struck.store(true, Ordering::Relaxed);
        }
        for fault in &faults {
            match fault {
                Fault::CrashBefore(_) => return self.die(number).await,
                Fault::Delay(_, time) => tokio::time::sleep(*time).await,
                Fault::Refuse(_, code) => {
                    let error = ApiError::status(*code, reason(*code), "refused by the simulation");
                    self.shared.trace.effect(self.shared.clock.seconds(), number, actor, effect, "REFUSED");
                    return Verdict::Fail(error);
                }
                _ => {}
            }
        }
        let description = described(actor, effect, workload);
        self.under_way.lock().push(UnderWay { description, number, faults });
        let mut step = self.step(number, actor, effect, Ok(b""));
        step.workload = workload;
        self.shared.check(|checker| checker.before(&step, &self.objects));
        Verdict::Proceed
    }

    /// An effect happened or failed.
    async fn leave(
        &self,
        actor: &str,
        effect: &EffectOf<'_>,
        result: Result<&[u8], &ApiError>,
        workload: bool,
    ) -> Verdict {
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
        let told = match &result {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        let place = if workload { format!("{actor} in workload") } else { actor.to_owned() };
        self.shared.trace.effect(self.shared.clock.seconds(), number, &place, effect, &told);
        let lost = faults.contains(&Fault::LoseReply(number));
        let crashes = faults.contains(&Fault::CrashAfter(number));
        let mut step = self.step(number, actor, effect, result);
        step.workload = workload;
        let unheard = ApiError::Transport(TransportError::ambiguous("the answer was lost"));
        if lost || crashes {
            // It happened, but nobody was told: for promises about what was acknowledged it does not count.
            step.result = Err(&unheard);
        }
        self.shared.check(|checker| checker.after(&step, &self.objects));
        if crashes {
            return self.die(number).await;
        }
        if faults.contains(&Fault::CutWatches(number)) {
            self.shared.trace.line(self.shared.clock.seconds(), "WATCHES CUT");
            self.shared.cuts.send_modify(|cut| *cut += 1);
        }
        if lost {
            self.shared.trace.line(self.shared.clock.seconds(), &format!("ANSWER LOST of #{number}"));
            return Verdict::Fail(unheard);
        }
        Verdict::Proceed
    }

    /// The process hears something of its server on a watch with a number.
    pub fn told(&self, watch: u64, collection: &Collection, told: &Told) {
        if !self.dead.load(Ordering::Relaxed) {
            self.shared.check(|checker| checker.told(watch, collection, told, &self.objects));
        }
    }

    async fn die(&self, number: usize) -> Verdict {
        self.shared.trace.line(self.shared.clock.seconds(), &format!("CRASH at #{number}"));
        self.kill();
        self.shared.crashed.notify_one();
        std::future::pending().await
    }

    fn step<'a>(
        &self,
        number: usize,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> Step<'a> {
        Step { number, at: self.shared.clock.now(), actor, effect, result, workload: false }
    }
}

/// The same effect, however often it is described.
fn described(actor: &str, effect: &EffectOf<'_>, workload: bool) -> String {
    format!("{workload} {actor} {effect}")
}

impl Gate for SimGate {
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.enter(actor, effect, false))
    }

    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(self.leave(actor, effect, result, false))
    }

    fn read(&self, actor: &str, kind: &KindName, key: &Key, version: u64) {
        if !self.dead.load(Ordering::Relaxed) {
            self.shared.check(|checker| checker.read(actor, kind, key, version));
        }
    }

    fn decided(&self, actor: &str, object: &ObjectRef, read: &[(KindName, Key, u64)]) {
        if !self.dead.load(Ordering::Relaxed) {
            self.shared.check(|checker| checker.decided(actor, object, read));
        }
    }
}

/// The gate of one process on its way to workload clusters: the same numbers and faults, other objects.
pub(crate) struct WorkloadGate(pub Arc<SimGate>);

impl Gate for WorkloadGate {
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.0.enter(actor, effect, true))
    }

    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, Verdict> {
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
