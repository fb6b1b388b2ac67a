//! Disturbed runs as copies of one undisturbed run: at every effect that is to be disturbed the process forks, and
//! the copy meets with the misfortune. What came before is played once for all of them, and a copy is by nature what
//! a run from the beginning with that one fault would be.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{Fault, Misfortune, Report};
use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, setrlimit};

use crate::plan::{Kind, Plan};
use crate::record::Run;

/// Seconds of processor time after which a copy is given up: it makes no progress.
const PATIENCE: u64 = 300;

/// Somewhere in a copy something panicked, be it in a task that nobody waits for.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Hears of the end of a copy.
type Ended = dyn Fn(&Run) -> Result<()> + Send + Sync;

/// The run that is copied, and its copies.
pub struct Copies {
    story: &'static str,
    /// This program and the story's undisturbed run, in short.
    world: u64,
    plan: Plan,
    /// What need not be done again.
    held: HashSet<(Kind, usize)>,
    /// Where copies tell what went wrong.
    folder: PathBuf,
    state: Mutex<State>,
    /// Called after the end of every copy.
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
        story: &'static str,
        world: u64,
        plan: Plan,
        held: &[Run],
        folder: PathBuf,
        ended: impl Fn(&Run) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let held = held.iter().map(|run| (run.kind, run.effect)).collect();
        Self { story, world, plan, held, folder, state: Mutex::default(), ended: Box::new(ended) }
    }

    /// If this process is a copy: tells what came of it and ends.
    pub fn end_if_copy(&self, report: Report) {
        let Some(fault) = self.state.lock().copy else { return };
        let report = Report { faults: vec![fault], ..report };
        let fine = report.violation.is_none() && !PANICKED.load(Ordering::Relaxed);
        if !fine && let Err(error) = std::fs::write(self.place(&fault), report.story()) {
            eprintln!("{}: {error}", self.place(&fault).display());
        }
        std::process::exit(i32::from(!fine));
    }

    /// Waits for the copies that still run. The answer: every run there was.
    pub fn end(&self) -> Result<Vec<Run>> {
        let mut state = self.state.lock();
        while !state.running.is_empty() {
            self.await_one(&mut state)?;
        }
        state.error.take().map_or(Ok(()), Err)?;
        Ok(std::mem::take(&mut state.ended))
    }

    fn place(&self, fault: &Fault) -> PathBuf {
        self.folder.join(format!("{}-{}.txt", self.story, fault.to_string().replace(' ', "-")))
    }

    /// Waits until a copy ends.
    fn await_one(&self, state: &mut State) -> Result<()> {
        let (pid, status, cpu) = wait()?;
        let Some(fault) = state.running.remove(&pid) else { return Ok(()) };
        let Some(kind) = Kind::of(&fault) else { return Ok(()) };
        let broken = match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(1), _) => {
                let place = self.place(&fault);
                let text = std::fs::read_to_string(&place).unwrap_or_default();
                let what: String = text.lines().nth(1).unwrap_or("a panic").chars().take(600).collect();
                Some(format!("{what} ({})", place.display()))
            }
            (_, Some(libc::SIGXCPU)) => Some(format!("no end in {PATIENCE} seconds of processor time")),
            (code, signal) => Some(format!("ended with code {code:?}, signal {signal:?}")),
        };
        let story = self.story.to_owned();
        let run = Run { story, world: self.world, kind, effect: fault.effect(), cpu, broken };
        (self.ended)(&run)?;
        state.ended.push(run);
        Ok(())
    }

    /// Makes a copy with a fault. True in the copy.
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
                let limit = Rlimit { current: Some(PATIENCE), maximum: Some(PATIENCE + 5) };
                setrlimit(Resource::Cpu, limit).context("limit a copy")?;
                let told = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |info| {
                    PANICKED.store(true, Ordering::Relaxed);
                    told(info);
                }));
                state.copy = Some(fault);
                Ok(true)
            }
        }
    }
}

impl Misfortune for Copies {
    fn strike(&self, effect: usize) -> Vec<Fault> {
        let mut state = self.state.lock();
        if !state.exposed || state.copy.is_some() || state.error.is_some() {
            return Vec::new();
        }
        let held = |fault: &Fault| Kind::of(fault).is_some_and(|kind| self.held.contains(&(kind, effect)));
        for fault in self.plan.faults(effect).into_iter().filter(|fault| !held(fault)) {
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

    fn exposed(&self) {
        self.state.lock().exposed = true;
    }
}

/// Two processes where there was one: the new one's id in the old one, nothing in the new one.
#[expect(unsafe_code, reason = "the standard library can start programs, not copy itself")]
fn fork() -> Result<Option<Pid>> {
    let threads = std::fs::read_dir("/proc/self/task").context("count the threads")?.count();
    ensure!(threads == 1, "{threads} threads run: a process can be copied only while it has one");
    // SAFETY: what makes a fork dangerous is other threads, which do not exist in the copy while their locks and
    // half-done work do. There are none: counted above, and nobody else is here to start one.
    let pid = unsafe { libc::fork() };
    ensure!(pid >= 0, "no copy could be made: {}", std::io::Error::last_os_error());
    Ok(Pid::from_raw(pid))
}

/// Waits until a process that was started ends: which one, how, and the milliseconds of processor time it took.
#[expect(unsafe_code, reason = "neither the standard library nor rustix tells what a process has used")]
fn wait() -> Result<(Pid, ExitStatus, u64)> {
    let mut status = 0;
    // SAFETY: numbers alone, for which zero is a value like any other.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places outlive the call, which writes nothing else.
    let pid = unsafe { libc::wait4(-1, &raw mut status, 0, &raw mut usage) };
    ensure!(pid > 0, "wait for a copy: {}", std::io::Error::last_os_error());
    let pid = Pid::from_raw(pid).context("a process without an id")?;
    let milliseconds = |time: libc::timeval| time.tv_sec * 1000 + time.tv_usec / 1000;
    let cpu = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
    Ok((pid, ExitStatus::from_raw(status), u64::try_from(cpu).unwrap_or_default()))
}

/// The time since a moment, for people.
pub fn since(begun: Instant) -> String {
    for_people(begun.elapsed().as_secs())
}

/// A number of seconds, for people.
pub fn for_people(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
