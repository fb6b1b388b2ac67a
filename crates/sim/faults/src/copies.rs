//! Runs with a fault, as forks of one run without faults: the process forks at every effect that gets a fault, and
//! the copy injects it. The part before the fault runs once for all copies, and a copy is identical to a run from the
//! beginning with that one fault.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use capstan_harness::{Fault, FaultPlan, Report};
use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, setrlimit};

use crate::plan::{Kind, Plan};
use crate::record::Run;

/// CPU seconds after which a copy is killed: it makes no progress.
const CPU_LIMIT: u64 = 300;

/// A task of this copy has panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Called at the end of a copy.
type Ended = dyn Fn(&Run) -> Result<()> + Send + Sync;

/// The run that is copied, and its copies.
pub struct Copies {
    scenario: &'static str,
    /// Hash of this program and of the scenario's run without faults.
    world: u64,
    plan: Plan,
    /// Runs that passed before and are not repeated.
    passed: HashSet<(Kind, usize)>,
    /// Where copies write the traces of failed runs.
    folder: PathBuf,
    state: Mutex<State>,
    ended: Box<Ended>,
}

#[derive(Default)]
struct State {
    exposed: bool,
    /// This process is the copy with this fault.
    copy: Option<Fault>,
    running: HashMap<Pid, Fault>,
    ended: Vec<Run>,
    error: Option<anyhow::Error>,
}

impl Copies {
    pub fn new(
        scenario: &'static str,
        world: u64,
        plan: Plan,
        passed: &[Run],
        folder: PathBuf,
        ended: impl Fn(&Run) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let passed = passed.iter().map(|run| (run.kind, run.effect)).collect();
        Self { scenario, world, plan, passed, folder, state: Mutex::default(), ended: Box::new(ended) }
    }

    /// In a copy: writes its result and exits.
    pub fn end_if_copy(&self, report: Report) {
        let Some(fault) = self.state.lock().copy else { return };
        let report = Report { faults: vec![fault], ..report };
        let fine = report.violation.is_none() && !PANICKED.load(Ordering::Relaxed);
        if !fine && let Err(error) = std::fs::write(self.trace_path(&fault), report.transcript()) {
            eprintln!("{}: {error}", self.trace_path(&fault).display());
        }
        std::process::exit(i32::from(!fine));
    }

    /// Waits for the running copies and returns all runs.
    pub fn end(&self) -> Result<Vec<Run>> {
        let mut state = self.state.lock();
        while !state.running.is_empty() {
            self.await_one(&mut state)?;
        }
        state.error.take().map_or(Ok(()), Err)?;
        Ok(std::mem::take(&mut state.ended))
    }

    fn trace_path(&self, fault: &Fault) -> PathBuf {
        self.folder.join(format!("{}-{}.txt", self.scenario, fault.to_string().replace(' ', "-")))
    }

    fn await_one(&self, state: &mut State) -> Result<()> {
        let (pid, status, cpu) = wait()?;
        let Some(fault) = state.running.remove(&pid) else { return Ok(()) };
        let Some(kind) = Kind::of(&fault) else { return Ok(()) };
        let broken = match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(1), _) => {
                let path = self.trace_path(&fault);
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let what: String = text.lines().nth(1).unwrap_or("a panic").chars().take(600).collect();
                Some(format!("{what} ({})", path.display()))
            }
            (_, Some(libc::SIGXCPU)) => Some(format!("not finished after {CPU_LIMIT} seconds of CPU time")),
            (code, signal) => Some(format!("ended with code {code:?}, signal {signal:?}")),
        };
        let scenario = self.scenario.to_owned();
        let run = Run { scenario, world: self.world, kind, effect: fault.effect(), cpu, broken };
        (self.ended)(&run)?;
        state.ended.push(run);
        Ok(())
    }

    /// Forks a copy with a fault. Returns true in the copy.
    fn copy(&self, state: &mut State, fault: Fault) -> Result<bool> {
        while state.running.len() >= self.plan.jobs {
            self.await_one(state)?;
        }
        match fork()? {
            Some(pid) => {
                state.running.insert(pid, fault);
                Ok(false)
            }
            None => {
                let limit = Rlimit { current: Some(CPU_LIMIT), maximum: Some(CPU_LIMIT + 5) };
                setrlimit(Resource::Cpu, limit).context("limit a copy")?;
                let default_hook = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |info| {
                    PANICKED.store(true, Ordering::Relaxed);
                    default_hook(info);
                }));
                state.copy = Some(fault);
                Ok(true)
            }
        }
    }
}

impl FaultPlan for Copies {
    fn faults_at(&self, effect: usize) -> Vec<Fault> {
        let mut state = self.state.lock();
        if !state.exposed || state.copy.is_some() || state.error.is_some() {
            return Vec::new();
        }
        let passed =
            |fault: &Fault| Kind::of(fault).is_some_and(|kind| self.passed.contains(&(kind, effect)));
        for fault in self.plan.faults(effect).into_iter().filter(|fault| !passed(fault)) {
            match self.copy(&mut state, fault) {
                Ok(true) => return vec![fault],
                Ok(false) => {}
                Err(error) => {
                    state.error = Some(error);
                    break;
                }
            }
        }
        Vec::new()
    }

    fn enabled(&self) {
        self.state.lock().exposed = true;
    }
}

/// Forks the process: returns the child's id in the parent, `None` in the child.
#[expect(unsafe_code, reason = "the standard library can start programs, not copy itself")]
fn fork() -> Result<Option<Pid>> {
    let threads = std::fs::read_dir("/proc/self/task").context("count the threads")?.count();
    ensure!(threads == 1, "{threads} threads run: a process can fork only while it has one");
    // SAFETY: fork is unsafe with other threads, which do not exist in the child while their locks and unfinished
    // work do. There are none: counted above, and nothing here starts one.
    let pid = unsafe { libc::fork() };
    ensure!(pid >= 0, "fork failed: {}", std::io::Error::last_os_error());
    Ok(Pid::from_raw(pid))
}

/// Waits for a child: returns its id, exit status and CPU time in milliseconds.
#[expect(unsafe_code, reason = "neither the standard library nor rustix reports the CPU time of a child")]
fn wait() -> Result<(Pid, ExitStatus, u64)> {
    let mut status = 0;
    // SAFETY: plain integers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers outlive the call, which writes nothing else.
    let pid = unsafe { libc::wait4(-1, &raw mut status, 0, &raw mut usage) };
    ensure!(pid > 0, "wait for a copy: {}", std::io::Error::last_os_error());
    let pid = Pid::from_raw(pid).context("a process without an id")?;
    let milliseconds = |time: libc::timeval| time.tv_sec * 1000 + time.tv_usec / 1000;
    let cpu = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
    Ok((pid, ExitStatus::from_raw(status), u64::try_from(cpu).unwrap_or_default()))
}
