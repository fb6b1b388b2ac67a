//! The result of the same run on kube-apiserver: `tests/upstream/baseline.json`, committed, with the versions it was
//! recorded with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::explained::{self, Explanation};
use super::shapes;
use crate::cargo;
use crate::peers::catalog::{CLUSTER_API, KUBERNETES};

const FILE: &str = "tests/upstream/baseline.json";

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Baseline {
    cluster_api: String,
    kubernetes: String,
    /// Clusters of the recorded run.
    clusters: usize,
    /// Number of distinct error lines in the logs of the last recorded run.
    kinds: usize,
    /// Duration of each phase in seconds.
    pub phases: BTreeMap<String, f64>,
    /// Resident bytes of each process at 3+3.
    pub memory: BTreeMap<String, u64>,
    /// Error lines of all recorded runs, in normal form, without those in `explained.yaml`.
    pub shapes: BTreeSet<String>,
}

impl Baseline {
    fn path() -> PathBuf {
        cargo::root().join(FILE)
    }

    /// The committed baseline. Fails if it is missing or was recorded with other versions.
    pub fn load() -> Result<Self> {
        const RECORD: &str = "record it with `cargo xtask upstream-on-capstan --baseline`";
        let bytes = std::fs::read(Self::path()).with_context(|| format!("{FILE}: {RECORD}"))?;
        let known: Self = serde_json::from_slice(&bytes).context(FILE)?;
        ensure!(
            known.is_current(),
            "{FILE} is of Cluster API {} on Kubernetes {}, the peers are {CLUSTER_API} and {KUBERNETES}: {RECORD}",
            known.cluster_api,
            known.kubernetes
        );
        Ok(known)
    }

    fn is_current(&self) -> bool {
        (self.cluster_api.as_str(), self.kubernetes.as_str()) == (CLUSTER_API, KUBERNETES)
    }

    /// The baseline of one run on kube-apiserver.
    pub fn of(outcome: &Outcome, clusters: usize) -> Result<Self> {
        Ok(Self::default().with(outcome, clusters, &explained::load()?))
    }

    /// Records a run on kube-apiserver. Races differ between runs, so error lines of runs with the same versions are
    /// merged.
    pub fn record(outcome: &Outcome, clusters: usize) -> Result<()> {
        let before = Self::load().unwrap_or_default();
        let recorded = before.with(outcome, clusters, &explained::load()?);
        let text = serde_json::to_string_pretty(&recorded)? + "\n";
        std::fs::write(Self::path(), text).context(FILE)?;
        println!(
            "wrote {FILE}: {} kinds of error line, {} unexplained",
            recorded.kinds,
            recorded.shapes.len()
        );
        Ok(())
    }

    fn with(mut self, outcome: &Outcome, clusters: usize, explanations: &[Explanation]) -> Self {
        self.cluster_api = CLUSTER_API.to_owned();
        self.kubernetes = KUBERNETES.to_owned();
        self.clusters = clusters;
        self.kinds = outcome.shapes.len();
        // Runs vary by more than a tenth of a second.
        let rounded = |seconds: f64| (seconds * 10.0).round() / 10.0;
        self.phases = outcome
            .phases
            .iter()
            .map(|(name, took)| ((*name).to_owned(), rounded(took.as_secs_f64())))
            .collect();
        self.memory = outcome.usage.iter().map(|(name, usage)| (name.clone(), usage.resident)).collect();
        for (shape, example) in outcome.shapes.all() {
            // Slowness is only explained in a slow run, so it is never part of the baseline.
            let error = shapes::error_text(example).unwrap_or_else(|| shape.clone());
            if explained::explain(explanations, &error, true).is_err() {
                self.shapes.insert(shape.clone());
            }
        }
        self
    }
}
