//! A plane that can die and start again, in a world that goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_apiserver::Digest;
use capstan_apiserver::pki::Pki;
use capstan_apiserver::{Config, Server};
use capstan_controller::{Client, Env, Options, Runtime, Transport, Workloads};
use capstan_store::{OpenError, SimDisk, Store};

use crate::gate::{Observers, SimGate, WorkloadGate};
use crate::wire::Wire;
use crate::{Clock, Objects, Trace, Violation};

/// A plane is at rest when it has done nothing for this long: longer than any pause after a failure.
const QUIET: Duration = Duration::from_secs(700);
/// A plane that is not at rest by then never will be.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// Reaches workload clusters from a process that starts.
type Reach<'a> = Box<dyn Fn(Client, Env) -> Option<Arc<dyn Workloads>> + 'a>;

/// Opens the store on what the disk holds.
type Open<'a> = Box<dyn Fn(SimDisk, capstan_store::Options) -> Result<Store<Digest>, OpenError> + 'a>;

/// Leads from the way to the server to the one that the controllers take.
type Way<'a> = Box<dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + 'a>;

/// What a process is made of when it starts.
pub(crate) struct Assembly<'a> {
    pub store: Open<'a>,
    pub transport: Way<'a>,
    pub configure: Box<dyn Fn(Config) -> Config + 'a>,
    pub workloads: Reach<'a>,
    pub controllers: Box<dyn Fn(&mut Runtime) + 'a>,
}

/// A whole plane in simulated time.
pub struct World<'a> {
    seed: u64,
    boots: u64,
    disk: SimDisk,
    pki: Arc<Pki>,
    options: Options,
    assembly: Assembly<'a>,
    observers: Arc<Observers>,
    process: Option<Process>,
}

/// What dies in a crash.
struct Process {
    plane: Server,
    runtime: Option<Runtime>,
    gate: Arc<SimGate>,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        seed: u64,
        options: Options,
        assembly: Assembly<'a>,
        observers: Arc<Observers>,
    ) -> Self {
        let pki = Arc::new(Pki::ephemeral(observers.clock.env(seed)));
        let disk = SimDisk::new(seed);
        Self { seed, boots: 0, disk, pki, options, assembly, observers, process: None }
    }

    /// Starts the server on what the disk holds, without controllers.
    pub(crate) async fn boot(&mut self) -> Result<(), Violation> {
        self.boots += 1;
        let env = self.env();
        let failed = |what: String| Violation::new("boot", what);
        let clock = env.clone();
        let options = capstan_store::Options::with_clock(move || clock.now().into());
        let store = (self.assembly.store)(self.disk.clone(), options);
        let store = store.map_err(|error| failed(error.to_string()))?;
        let config = Config::in_memory().with_env(env).with_store(store).trusting_everybody();
        let config = (self.assembly.configure)(config);
        let plane =
            Server::start(config, self.pki.clone()).await.map_err(|error| failed(error.to_string()))?;
        let objects = Objects(plane.store().clone());
        self.observers.trace.line(self.observers.clock.seconds(), &format!("BOOT {}", self.boots));
        self.observers.check(|checker| checker.booted(&objects));
        let gate = Arc::new(SimGate::new(self.observers.clone(), objects));
        self.process = Some(Process { plane, runtime: None, gate });
        Ok(())
    }

    /// Starts the controllers.
    pub(crate) fn start(&mut self) {
        let env = self.env();
        let Some(process) = &mut self.process else { return };
        let direct = Client::in_process(process.plane.clone(), "capstan");
        let inner = (self.assembly.transport)(direct.transport().clone());
        let client = Client::new(Arc::new(Wire::new(inner, process.gate.clone())), "capstan");
        let elsewhere = client.gated(Arc::new(WorkloadGate(process.gate.clone())));
        let workloads = (self.assembly.workloads)(elsewhere, env.clone());
        let client = client.gated(process.gate.clone());
        let mut runtime = Runtime::with_workloads(client, env, self.options.clone(), workloads);
        (self.assembly.controllers)(&mut runtime);
        runtime.start();
        process.runtime = Some(runtime);
    }

    fn env(&self) -> Env {
        self.observers.clock.env(self.seed.wrapping_add(self.boots))
    }

    /// The process dies: tasks, memory and what the disk has not synced are gone. Then it starts again.
    pub async fn crash(&mut self) -> Result<(), Violation> {
        if let Some(process) = self.process.take() {
            process.gate.kill();
        }
        self.disk = self.disk.power_loss();
        // Tasks that were dropped get their turn to go.
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
        self.boot().await?;
        self.start();
        Ok(())
    }

    /// A user's client of the server. What a user does is no effect of the plane: it passes no gate.
    pub fn user(&self) -> Result<Client, Violation> {
        match &self.process {
            Some(process) => Ok(Client::in_process(process.plane.clone(), "user")),
            None => Err(Violation::new("boot", "the process does not run")),
        }
    }

    /// What the server holds.
    pub fn objects(&self) -> Result<Objects, Violation> {
        match &self.process {
            Some(process) => Ok(process.gate.objects.clone()),
            None => Err(Violation::new("boot", "the process does not run")),
        }
    }

    /// The controllers of the process that runs.
    pub fn runtime(&self) -> Option<&Runtime> {
        self.process.as_ref().and_then(|process| process.runtime.as_ref())
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.observers.clock
    }

    /// What has happened so far.
    pub fn trace(&self) -> &Trace {
        &self.observers.trace
    }

    /// What follows is what is to be disturbed.
    pub fn expose(&self) {
        self.observers.trace.expose();
        self.observers.misfortune.exposed();
    }

    /// Something has gone wrong on purpose.
    pub fn is_struck(&self) -> bool {
        self.observers.struck.load(Ordering::Relaxed)
    }

    /// Writes a line into the trace.
    pub fn note(&self, text: &str) {
        self.observers.trace.line(self.observers.clock.seconds(), text);
    }

    /// Lets time pass, through crashes and restarts.
    pub async fn pass(&mut self, time: Duration) -> Result<(), Violation> {
        let until = tokio::time::Instant::now() + time;
        loop {
            let observers = self.observers.clone();
            let crashed = tokio::select! {
                biased;
                () = observers.crashed.notified() => true,
                () = tokio::time::sleep_until(until) => false,
            };
            if let Some(violation) = observers.violations.lock().first() {
                return Err(violation.clone());
            }
            if !crashed {
                return Ok(());
            }
            self.crash().await?;
        }
    }

    /// Lets time pass until the plane has nothing to do any more, through crashes and restarts.
    pub async fn rest(&mut self) -> Result<(), Violation> {
        let begun = tokio::time::Instant::now();
        loop {
            if self.is_quiet().await? {
                let objects = self.objects()?;
                self.observers.check(|checker| checker.at_rest(&objects));
                let violation = self.observers.violations.lock().first().cloned();
                return violation.map_or(Ok(()), Err);
            }
            if begun.elapsed() > LIMIT {
                return Err(Violation::new(
                    "L1/L2",
                    format!("not at rest after {LIMIT:?} of simulated time"),
                ));
            }
        }
    }

    /// Lets some time pass, more than any pause after a failure; whether the plane did nothing in it.
    pub async fn is_quiet(&mut self) -> Result<bool, Violation> {
        let before = self.trace().effects();
        self.pass(QUIET).await?;
        let busy = self.runtime().map_or(0, |runtime| runtime.load().0);
        Ok(self.trace().effects() == before && busy == 0)
    }
}
