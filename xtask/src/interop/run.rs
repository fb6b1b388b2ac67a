//! Runs the suites of a plan, one after the other or several at a time, and records each outcome as it is known.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::history::{self, Pass};
use super::plan::{Candidate, Chosen, Plan};
use super::suites::Suite;
use crate::text::human_duration;

/// Lines of a failed suite's output that are repeated on the terminal.
const TAIL: usize = 40;

#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub suite: &'static Suite,
    pub passed: bool,
    pub took: Duration,
    /// Where it ran; `None` with uncommitted changes.
    pub commit: Option<String>,
}

impl Outcome {
    /// The last pass of a suite, if it still holds.
    pub fn kept(candidate: &Candidate) -> Option<Self> {
        let Pass { commit, took } = candidate.still_passes()?.clone();
        Some(Self {
            name: candidate.name(),
            suite: candidate.suite,
            passed: true,
            took,
            commit: Some(commit),
        })
    }
}

/// How suites are run.
pub struct Runner<'a> {
    /// Skip suites whose last pass still holds.
    pub keep: bool,
    /// The commit that outcomes are recorded for.
    pub commit: Option<&'a str>,
    /// Suites at the same time.
    pub jobs: usize,
    /// Folder for the output of suites that run at the same time.
    pub logs: PathBuf,
}

impl Runner<'_> {
    /// Runs every planned suite, even if one fails. `start` runs a command line, with its output in a file if one is given,
    /// and returns whether it passed. `record` is called with all outcomes so far, in the order of the plan, so that nothing
    /// is lost if the run is interrupted.
    pub fn run(
        &self,
        plan: &Plan,
        start: impl Fn(&[String], Option<&Path>) -> Result<bool> + Sync,
        record: impl Fn(&[Outcome]) -> Result<()> + Sync,
    ) -> Result<Vec<Outcome>> {
        if self.jobs > 1 {
            std::fs::create_dir_all(&self.logs).with_context(|| self.logs.display().to_string())?;
        }
        let queue: Mutex<VecDeque<_>> = Mutex::new(plan.chosen.iter().enumerate().collect());
        let ended: Mutex<Vec<(usize, Outcome)>> = Mutex::default();
        let worker = || -> Result<()> {
            loop {
                let Some((position, Chosen { candidate, .. })) = locked(&queue).pop_front() else {
                    return Ok(());
                };
                let outcome = self.one(candidate, &start)?;
                let mut ended = locked(&ended);
                let mut outcomes: Vec<_> = std::mem::take(&mut *ended);
                outcomes.push((position, outcome));
                outcomes.sort_by_key(|(position, _)| *position);
                let (positions, outcomes): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
                let recorded = record(&outcomes);
                *ended = positions.into_iter().zip(outcomes).collect();
                recorded?;
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("running a suite panicked"))?)
        })?;
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(ended.into_iter().map(|(_, outcome)| outcome).collect())
    }

    fn one(
        &self,
        candidate: &Candidate,
        start: &impl Fn(&[String], Option<&Path>) -> Result<bool>,
    ) -> Result<Outcome> {
        let name = candidate.name();
        let line = candidate.command();
        println!("\n== cargo xtask {}", line.join(" "));
        if let Some(kept) = Outcome::kept(candidate).filter(|_| self.keep) {
            let commit = kept.commit.as_deref().unwrap_or_default();
            let took = human_duration(kept.took);
            println!("passed in {took} at {commit}; nothing that it depends on has changed");
            return Ok(kept);
        }
        let log = (self.jobs > 1).then(|| self.logs.join(format!("{}.log", name.replace([' ', '/'], "-"))));
        let since = Instant::now();
        let passed = start(&line, log.as_deref())?;
        let took = since.elapsed();
        if let Some(log) = &log {
            let verdict = if passed { "passed" } else { "FAILED" };
            println!("\n== {name}: {verdict}, {} ({})", human_duration(took), log.display());
            if !passed {
                print_end(log)?;
            }
        }
        if let Some(commit) = self.commit.filter(|_| passed) {
            history::remember(&name, commit, took)?;
        }
        Ok(Outcome { name, suite: candidate.suite, passed, took, commit: self.commit.map(String::from) })
    }
}

/// A worker that panicked leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the end of a failed suite's output.
fn print_end(log: &Path) -> Result<()> {
    let text = std::fs::read(log).with_context(|| log.display().to_string())?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(TAIL)..] {
        println!("   {line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn plan(names: &[&str]) -> Plan {
        let pass = || Pass { commit: "0123abc".to_owned(), took: Duration::from_secs(9) };
        Plan::of(names.iter().map(|name| Candidate::passed(name, pass())).collect(), &[], "all")
    }

    #[test]
    fn a_kept_pass_is_recorded_even_if_no_suite_runs_after_it() {
        let recorded = Mutex::new(Vec::new());
        let runner = Runner { keep: true, commit: Some("fedcba9"), jobs: 1, logs: PathBuf::new() };
        let record = |outcomes: &[Outcome]| {
            *locked(&recorded) = outcomes.iter().map(|one| (one.name.clone(), one.commit.clone())).collect();
            Ok(())
        };
        runner.run(&plan(&["crash"]), |line, _| anyhow::bail!("{line:?} is run"), record).unwrap();
        assert_eq!(*locked(&recorded), [("crash".to_owned(), Some("0123abc".to_owned()))]);
    }

    #[test]
    fn suites_run_at_the_same_time_and_are_recorded_in_the_order_of_the_plan() {
        let logs = std::env::temp_dir().join(format!("capstan-interop-{}", std::process::id()));
        let runner = Runner { keep: false, commit: None, jobs: 2, logs: logs.clone() };
        // Neither ends before the other one runs.
        let together = Barrier::new(2);
        let start = |line: &[String], log: Option<&Path>| {
            together.wait();
            std::fs::write(log.unwrap(), "output").unwrap();
            Ok(line[0] == "oidc")
        };
        let outcomes = runner.run(&plan(&["kms", "oidc"]), start, |_| Ok(())).unwrap();
        let outcomes: Vec<_> = outcomes.iter().map(|one| (one.name.as_str(), one.passed)).collect();
        assert_eq!(outcomes, [("kms", false), ("oidc", true)]);
        assert!(logs.join("kms.log").exists());
        std::fs::remove_dir_all(&logs).unwrap();
    }
}
