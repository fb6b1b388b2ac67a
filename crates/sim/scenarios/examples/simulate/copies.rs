//! Disturbed runs as copies of one undisturbed run: at every effect that is to be disturbed the process forks, and
//! the copy meets with the misfortune. What came before is played once for all of them, and a copy is by nature what
//! a run from the beginning with that one fault would be.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use capstan_harness::{Fault, Misfortune, Report};
use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, wait};

use crate::plan::Plan;

/// Seconds of processor time after which a copy is given up: it makes no progress.
const PATIENCE: u64 = 300;

/// Somewhere in a copy something panicked, be it in a task that nobody waits for.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The run that is copied, and its copies.
pub struct Copies {
    story: &'static str,
    plan: Plan,
    /// Where copies tell what went wrong.
    folder: PathBuf,
    state: Mutex<State>,
    /// Called after the end of every copy.
    ended: Box<dyn Fn(bool) + Send + Sync>,
}

#[derive(Default)]
struct State {
    exposed: bool,
    /// This process is the copy with this fault.
    copy: Option<Fault>,
    running: HashMap<Pid, Fault>,
    ended: Vec<(Fault, Option<String>)>,
    error: Option<anyhow::Error>,
}

impl Copies {
    pub fn new(
        story: &'static str,
        plan: Plan,
        folder: PathBuf,
        ended: impl Fn(bool) + Send + Sync + 'static,
    ) -> Self {
        Self { story, plan, folder, state: Mutex::default(), ended: Box::new(ended) }
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

    /// Waits for the copies that still run. The answer: every fault, and what it broke.
    pub fn end(&self) -> Result<Vec<(Fault, Option<String>)>> {
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
        let Some((pid, status)) = wait(WaitOptions::empty()).context("wait for a copy")? else {
            return Ok(());
        };
        let Some(fault) = state.running.remove(&pid) else { return Ok(()) };
        let broken = match (status.exit_status(), status.terminating_signal()) {
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
        (self.ended)(broken.is_some());
        state.ended.push((fault, broken));
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
        for fault in self.plan.faults(effect) {
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
