//! Scenarios of kubectl commands, each in a namespace of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A sequence of commands that build on each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// File name without number and extension.
    #[serde(skip)]
    pub name: String,
    pub about: String,
    /// Collections whose stored objects are compared after every step: `v1/configmaps`, or a path.
    #[serde(default)]
    pub objects: Vec<String>,
    /// Files in the working folder of the steps. Those ending in `.sh` are executable.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    pub steps: Vec<Step>,
}

/// A shell command with kubectl on its path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub run: String,
    /// Invalid input: the command must fail.
    #[serde(default)]
    pub bad: bool,
    /// A failure that is the correct result, as of `diff` or `can-i`.
    #[serde(default)]
    pub fails: bool,
    /// Controllers are still active after this step: stored objects are not compared.
    #[serde(default)]
    pub unsettled: bool,
    /// The order of output lines is not guaranteed.
    #[serde(default)]
    pub sorted: bool,
    /// Prepares the next step: must succeed, is not compared and not counted.
    #[serde(default)]
    pub quiet: bool,
    /// Repeated until standard output contains this text, for what controllers do.
    #[serde(default)]
    pub until: Option<String>,
    /// Regular expressions of output that differs between runs.
    #[serde(default)]
    pub mask: Vec<String>,
}

impl Scenario {
    pub fn namespace(&self) -> String {
        format!("parity-{}", self.name)
    }

    pub fn compared(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.quiet)
    }

    /// Path of an entry of `objects`.
    pub fn collection(&self, entry: &str) -> String {
        if entry.starts_with('/') {
            return entry.replace("{namespace}", &self.namespace());
        }
        let (version, plural) = entry.rsplit_once('/').unwrap_or(("v1", entry));
        let root = if version.contains('/') { "/apis" } else { "/api" };
        format!("{root}/{version}/namespaces/{}/{plural}", self.namespace())
    }
}

pub fn folder() -> PathBuf {
    crate::cargo::root().join("tests/kubectl-parity")
}

/// All scenarios, ordered by file name.
pub fn load() -> Result<Vec<Scenario>> {
    let folder = folder().join("scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        let mut scenario: Scenario =
            serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        scenario.name =
            stem.split_once('-').context("a scenario's file name is <number>-<name>.yaml")?.1.to_owned();
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = scenario.compared().find(|step| !seen.insert(&step.run)) {
            bail!(
                "{}: the same line twice, so a difference could not be named: {}",
                path.display(),
                twice.run
            );
        }
        all.push(scenario);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_invocations_and_enough_bad_input() {
        let all = load().unwrap();
        let steps: Vec<_> = all.iter().flat_map(Scenario::compared).collect();
        assert!(steps.len() >= 120, "{} invocations", steps.len());
        let bad = steps.iter().filter(|step| step.bad).count();
        assert!(bad >= 40, "{bad} kinds of bad input");
    }
}
