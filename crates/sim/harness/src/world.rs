//! A management cluster that can crash and restart, and its clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_apiserver::Digest;
use capstan_apiserver::{Config, Server};
use capstan_controller::{Client, Env, Options, Runtime, Transport, Workloads};
use capstan_pki::Pki;
use capstan_store::{OpenError, SimDisk, Store};

use crate::gate::{Observers, SimGate, WorkloadGate};
use crate::watch_tap::WatchTap;
use crate::{Clock, Objects, Trace, Violation};

/// A management cluster is idle after this long without an effect: longer than any backoff.
const QUIET: Duration = Duration::from_secs(700);
/// A management cluster that is not idle by then has failed.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// Reaches workload clusters from a starting process.
type ReachWorkloads<'a> = Box<dyn Fn(Client, Env) -> Option<Arc<dyn Workloads>> + 'a>;

type OpenStore<'a> = Box<dyn Fn(SimDisk, capstan_store::Options) -> Result<Store<Digest>, OpenError> + 'a>;

/// Wraps the transport between the controllers and the server.
type WrapTransport<'a> = Box<dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + 'a>;

/// What a process is assembled from when it starts.
pub(crate) struct Assembly<'a> {
    pub store: OpenStore<'a>,
    pub transport: WrapTransport<'a>,
    pub configure: Box<dyn Fn(Config) -> Config + 'a>,
    pub workloads: ReachWorkloads<'a>,
    pub controllers: Box<dyn Fn(&mut Runtime) + 'a>,
}

/// A whole management cluster in simulated time.
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

/// What is lost in a crash.
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

    /// Starts the server from the disk, without controllers.
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

    pub(crate) fn start(&mut self) {
        let env = self.env();
        let Some(process) = &mut self.process else { return };
        let direct = Client::in_process(process.plane.clone(), "capstan");
        let inner = (self.assembly.transport)(direct.transport().clone());
        let client = Client::new(Arc::new(WatchTap::new(inner, process.gate.clone())), "capstan");
        let workload_client = client.gated(Arc::new(WorkloadGate(process.gate.clone())));
        let workloads = (self.assembly.workloads)(workload_client, env.clone());
        let client = client.gated(process.gate.clone());
        let mut runtime = Runtime::with_workloads(client, env, self.options.clone(), workloads);
        (self.assembly.controllers)(&mut runtime);
        runtime.start();
        process.runtime = Some(runtime);
    }

    fn env(&self) -> Env {
        self.observers.clock.env(self.seed.wrapping_add(self.boots))
    }

    /// Crashes the process and restarts it. Tasks, memory and unsynced data are lost.
    pub async fn crash(&mut self) -> Result<(), Violation> {
        self.restart_server().await?;
        self.start();
        Ok(())
    }

    async fn restart_server(&mut self) -> Result<(), Violation> {
        if let Some(process) = self.process.take() {
            process.gate.kill();
        }
        self.disk = self.disk.power_loss();
        // Dropped tasks get a chance to end.
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
        self.boot().await
    }

    /// A client for the user. Its requests are not effects: they do not pass the gate.
    pub fn user(&self) -> Result<Client, Violation> {
        match &self.process {
            Some(process) => Ok(Client::in_process(process.plane.clone(), "user")),
            None => Err(Violation::new("boot", "the process is not running")),
        }
    }

    pub fn objects(&self) -> Result<Objects, Violation> {
        match &self.process {
            Some(process) => Ok(process.gate.objects.clone()),
            None => Err(Violation::new("boot", "the process is not running")),
        }
    }

    /// The controllers of the running process.
    pub fn runtime(&self) -> Option<&Runtime> {
        self.process.as_ref().and_then(|process| process.runtime.as_ref())
    }

    pub fn clock(&self) -> Clock {
        self.observers.clock
    }

    pub fn trace(&self) -> &Trace {
        &self.observers.trace
    }

    /// Enables faults from the next effect on.
    pub fn enable_faults(&self) {
        self.observers.trace.enable_faults();
        self.observers.plan.enabled();
    }

    pub fn fault_injected(&self) -> bool {
        self.observers.injected.load(Ordering::Relaxed)
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: &str) {
        self.observers.trace.line(self.observers.clock.seconds(), text);
    }

    /// Lets simulated time pass, through crashes and restarts.
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

    /// Lets time pass until a fault is injected, at most so long. Returns whether one was. A process that died is started
    /// without its controllers, so that a user comes before them: see [`Self::resume`].
    pub async fn pass_until_fault(&mut self, most: Duration) -> Result<bool, Violation> {
        const STEP: Duration = Duration::from_millis(100);
        let until = tokio::time::Instant::now() + most;
        while tokio::time::Instant::now() < until {
            let observers = self.observers.clone();
            let crashed = tokio::select! {
                biased;
                () = observers.crashed.notified() => true,
                () = tokio::time::sleep(STEP) => false,
            };
            if let Some(violation) = observers.violations.lock().first() {
                return Err(violation.clone());
            }
            if crashed {
                self.restart_server().await?;
            }
            if crashed || self.fault_injected() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Starts the controllers of a process that has none.
    pub fn resume(&mut self) {
        if self.process.as_ref().is_some_and(|process| process.runtime.is_none()) {
            self.start();
        }
    }

    /// Lets time pass until the controllers are idle, through crashes and restarts.
    pub async fn run_until_idle(&mut self) -> Result<(), Violation> {
        let begun = tokio::time::Instant::now();
        loop {
            if self.is_quiet().await? {
                let objects = self.objects()?;
                self.observers.check(|checker| checker.idle(&objects));
                let violation = self.observers.violations.lock().first().cloned();
                return violation.map_or(Ok(()), Err);
            }
            if begun.elapsed() > LIMIT {
                return Err(Violation::new("L1/L2", format!("not idle after {LIMIT:?} of simulated time")));
            }
        }
    }

    /// Lets time pass, longer than any backoff, and returns whether there was no effect.
    pub async fn is_quiet(&mut self) -> Result<bool, Violation> {
        let before = self.trace().effects();
        self.pass(QUIET).await?;
        let busy = self.runtime().map_or(0, |runtime| runtime.load().0);
        Ok(self.trace().effects() == before && busy == 0)
    }
}
