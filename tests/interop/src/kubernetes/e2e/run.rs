//! One upstream test in one process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use regex::Regex;

use crate::bed::process::{Ending, Program};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    Failed,
    Skipped,
    TimedOut,
}

impl TestResult {
    pub fn name(self) -> &'static str {
        match self {
            TestResult::Passed => "passed",
            TestResult::Failed => "FAILED",
            // A skipped test counts as not passed.
            TestResult::Skipped => "SKIPPED",
            TestResult::TimedOut => "TIMED OUT",
        }
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub result: TestResult,
    pub took: Duration,
    pub log: PathBuf,
}

/// Runs the test of exactly that name. Its number is unique within a run.
pub async fn run_one(
    program: &Path,
    kubeconfig: &Path,
    logs: &Path,
    (number, name): (usize, String),
    limit: Duration,
) -> Result<Outcome> {
    let started = Instant::now();
    let mut process = Program::new(&file_name(number, &name), program)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--provider=local", "--allowed-not-ready-nodes=-1", "--minStartupPods=0"])
        .args(["--system-pods-startup-timeout=1s", "--disable-log-dump", "--ginkgo.no-color"])
        .arg(format!("--ginkgo.focus={}$", focus(&name)))
        .start(logs)?;
    let ending = process.wait(limit).await?;
    let text = std::fs::read(process.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())?;
    let result = match ending {
        Ending::TimedOut => TestResult::TimedOut,
        Ending::Exited => result(&text),
    };
    Ok(Outcome { name, result, took: started.elapsed(), log: process.log().to_owned() })
}

/// Ginkgo matches against the texts of all containers and the test, joined by spaces.
fn focus(name: &str) -> String {
    regex::escape(name)
}

/// Names are cut; their numbers keep those with the same beginning apart.
fn file_name(number: usize, name: &str) -> String {
    let mut out = format!("{number:03}");
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        out.push('-');
        out.push_str(part);
    }
    out.truncate(150);
    out
}

fn result(text: &str) -> TestResult {
    let Ok(summary) = Regex::new(r"(\d+) Passed \| (\d+) Failed") else { return TestResult::Failed };
    match summary.captures(text).map(|found| (found[1].to_owned(), found[2].to_owned())) {
        Some((passed, failed)) if failed == "0" => {
            if passed == "0" {
                TestResult::Skipped
            } else {
                TestResult::Passed
            }
        }
        _ => TestResult::Failed,
    }
}

/// The lines of a log that describe the failure.
pub fn failure(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let start = lines.iter().position(|line| line.contains("[FAILED]") || line.contains("[PANICKED]"));
    let start = start.unwrap_or_else(|| lines.len().saturating_sub(12));
    lines[start..].iter().take(12).map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_with_the_same_beginning_have_logs_of_their_own() {
        let long = "x".repeat(200);
        assert_ne!(file_name(7, &format!("{long} a")), file_name(8, &format!("{long} b")));
        assert_eq!(file_name(7, "[sig-a] does b, c"), "007-sig-a-does-b-c");
    }

    #[test]
    fn ginkgo_summaries_are_read() {
        assert_eq!(result("1 Passed | 0 Failed | 0 Pending"), TestResult::Passed);
        assert_eq!(result("0 Passed | 1 Failed"), TestResult::Failed);
        assert_eq!(result("0 Passed | 0 Failed"), TestResult::Skipped);
        assert_eq!(result("panic"), TestResult::Failed);
    }
}
