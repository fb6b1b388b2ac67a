//! The record of finished runs in a file: a stopped simulation resumes there.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::plan::Kind;

/// A finished run with a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub scenario: String,
    /// Hash of program, scenario and seed.
    pub world: u64,
    pub kind: Kind,
    pub effect: usize,
    /// CPU time in milliseconds.
    pub cpu: u64,
    /// The violated property.
    pub broken: Option<String>,
}

/// A hash that identifies a program or a trace.
pub fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The file: one run per line.
pub struct Record {
    known: Vec<Run>,
    file: Mutex<File>,
}

impl Record {
    /// Reads the file. Invalid lines, such as a truncated one, are skipped.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(shown)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(shown)?;
        let text = std::fs::read_to_string(path).with_context(shown)?;
        let known = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { known, file: Mutex::new(file) })
    }

    /// Passed runs of a scenario, each once.
    pub fn passed(&self, scenario: &str, world: u64) -> Vec<Run> {
        let mut passed: Vec<Run> = Vec::new();
        for run in self.known.iter().filter(|run| run.scenario == scenario && run.world == world) {
            passed.retain(|known| (known.kind, known.effect) != (run.kind, run.effect));
            if run.broken.is_none() {
                passed.push(run.clone());
            }
        }
        passed
    }

    /// Appends a run, on its own line even if the last line was truncated.
    pub fn add(&self, run: &Run) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(run)?);
        self.file.lock().write_all(line.as_bytes()).context("write the record of runs")
    }
}
