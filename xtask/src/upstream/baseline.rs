//! What the same run on kube-apiserver gave, kept in the cache of the peers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::shapes::Shapes;
use crate::peers::Cache;

/// Timings and memory of the last run, error lines of all runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    pub phases: BTreeMap<String, f64>,
    pub memory: BTreeMap<String, u64>,
    pub shapes: Shapes,
}

impl Baseline {
    fn path() -> Result<PathBuf> {
        Ok(Cache::locate()?.folder("baseline")?.join("upstream.json"))
    }

    /// The kept baseline; empty if there was no run yet.
    pub fn load() -> Result<Self> {
        let path = Self::path()?;
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| path.display().to_string()),
            Err(_) => Ok(Self::default()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    /// Races differ from run to run, so error lines add up.
    pub fn merged(mut self, outcome: &Outcome) -> Self {
        self.phases =
            outcome.phases.iter().map(|(name, took)| ((*name).to_owned(), took.as_secs_f64())).collect();
        self.memory = outcome.usage.iter().map(|(name, usage)| (name.clone(), usage.resident)).collect();
        self.shapes.add(&outcome.shapes);
        self
    }

    pub fn save(&self) -> Result<()> {
        let path = Self::path()?;
        std::fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| path.display().to_string())?;
        println!("baseline: {}", path.display());
        Ok(())
    }
}
