//! What is known of runs that ended, kept in a file: whoever stops in the middle goes on there.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::plan::Kind;

/// One disturbed run, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The story.
    pub story: String,
    /// Which program, story and seed it was, in short.
    pub world: u64,
    /// What went wrong on purpose.
    pub kind: Kind,
    /// At which effect.
    pub effect: usize,
    /// Milliseconds of processor time.
    pub cpu: u64,
    /// What did not hold.
    pub broken: Option<String>,
}

/// A program or what it did in short, to tell it from others.
pub fn in_short(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The file: a run per line.
pub struct Record {
    known: Vec<Run>,
    file: Mutex<File>,
}

impl Record {
    /// Reads what there is. Lines that make no sense, such as one cut off, are none.
    pub fn open(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(place)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(place)?;
        let text = std::fs::read_to_string(path).with_context(place)?;
        let known = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { known, file: Mutex::new(file) })
    }

    /// Runs of a story that held, each once.
    pub fn held(&self, story: &str, world: u64) -> Vec<Run> {
        let mut held: Vec<Run> = Vec::new();
        for run in self.known.iter().filter(|run| run.story == story && run.world == world) {
            held.retain(|known| (known.kind, known.effect) != (run.kind, run.effect));
            if run.broken.is_none() {
                held.push(run.clone());
            }
        }
        held
    }

    /// Adds a run: a line of its own even where the last one was cut off.
    pub fn add(&self, run: &Run) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(run)?);
        self.file.lock().write_all(line.as_bytes()).context("write the record of runs")
    }
}
