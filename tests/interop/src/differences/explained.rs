//! Intended differences of a suite: `tests/SUITE/explained.yaml`. Each has a reason; none may be unused.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde::Deserialize;

use super::Difference;
use crate::cargo;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Regular expressions of the scenario with its step, of kind and name, of the path and of both values. An absent one
    /// matches everything.
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    object: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    theirs: String,
    #[serde(default)]
    ours: String,
    reason: String,
}

#[derive(Debug)]
struct Explanation {
    label: String,
    patterns: [Regex; 5],
}

/// The explanations, and which of them were needed.
#[derive(Debug)]
pub struct Explanations {
    all: Vec<Explanation>,
    used: BTreeSet<usize>,
}

impl Explanations {
    pub fn load(suite: &str) -> Result<Self> {
        let path = cargo::root().join("tests").join(suite).join("explained.yaml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let entries: Vec<Entry> =
            serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let all = entries.into_iter().map(Explanation::parse).collect::<Result<_>>()?;
        Ok(Self { all, used: BTreeSet::new() })
    }

    /// Whether a difference is intended.
    pub fn cover(&mut self, difference: &Difference) -> bool {
        let found = self.all.iter().position(|explanation| explanation.covers(difference));
        self.used.extend(found);
        found.is_some()
    }

    pub fn unused(&self) -> Vec<&str> {
        let all = self.all.iter().enumerate();
        all.filter(|(at, _)| !self.used.contains(at)).map(|(_, it)| it.label.as_str()).collect()
    }
}

impl Explanation {
    fn parse(entry: Entry) -> Result<Self> {
        let label = format!("{} {} {}", entry.scenario, entry.object, entry.path);
        ensure!(entry.reason.trim().len() > 20, "{label}: no reason");
        let pattern = |text: &str| Regex::new(text).with_context(|| label.clone());
        let patterns = [
            pattern(&entry.scenario)?,
            pattern(&entry.object)?,
            pattern(&entry.path)?,
            pattern(&entry.theirs)?,
            pattern(&entry.ours)?,
        ];
        Ok(Self { label, patterns })
    }

    fn covers(&self, difference: &Difference) -> bool {
        let [scenario, object, path, theirs, ours] = &self.patterns;
        scenario.is_match(&format!("{}, {}", difference.scenario, difference.step))
            && object.is_match(&difference.object)
            && path.is_match(&difference.path)
            && theirs.is_match(&difference.theirs)
            && ours.is_match(&difference.ours)
    }
}

/// Fails if a difference has no explanation, or, in a whole run, an explanation no difference.
pub fn judge(suite: &str, differences: &[Difference], whole: bool) -> Result<()> {
    let mut explanations = Explanations::load(suite)?;
    let open: Vec<&Difference> = differences.iter().filter(|it| !explanations.cover(it)).collect();
    for difference in &open {
        println!("{difference}");
    }
    println!("{suite}: {} differences explained, {} not", differences.len() - open.len(), open.len());
    ensure!(open.is_empty(), "{} differences are not explained", open.len());
    let unused = explanations.unused();
    ensure!(!whole || unused.is_empty(), "unused explanations: {}", unused.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_explanation_is_readable_and_has_a_reason() {
        for suite in ["eksa-goldens", "topology-diff"] {
            assert!(Explanations::load(suite).is_ok(), "{suite}");
        }
    }
}
