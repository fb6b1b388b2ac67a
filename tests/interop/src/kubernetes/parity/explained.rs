//! Intended differences. Each has a reason and is listed in the docs; none may be unused.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::scenario::{self, Scenario};

/// An intended difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    pub scenario: String,
    /// The complete line of the step.
    pub run: String,
    /// `stdout`, `stderr`, `exit code` or a collection.
    pub what: String,
    pub reason: String,
}

pub fn load() -> Result<Vec<Explanation>> {
    let path = scenario::folder().join("explained.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

pub fn page_path() -> PathBuf {
    crate::cargo::root().join("docs/dev/kubectl-parity.md")
}

/// The page: what is compared, and what differs on purpose.
pub fn page(scenarios: &[Scenario], explained: &[Explanation]) -> String {
    let steps: Vec<_> = scenarios.iter().flat_map(Scenario::compared).collect();
    let bad = steps.iter().filter(|step| step.bad).count();
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").unwrap_or_default();
    line("# kubectl against Capstan and against kube-apiserver\n".into());
    line(format!(
        "`cargo xtask kubectl-parity` runs {} kubectl invocations ({bad} of them bad input) against `capstan server` and\n\
         against kube-apiserver with etcd and kube-controller-manager. It compares standard output, standard error, exit code\n\
         and the stored objects, after replacing uids, times and resource versions. Two things are not compared anywhere: who\n\
         manages the fields of `kube-root-ca.crt`, which the server's own controllers write, and whether the items of a list\n\
         repeat `apiVersion` and `kind`. This page is written by `cargo xtask kubectl-parity --write-docs`.\n",
        steps.len()
    ));
    line("## What is compared\n".into());
    line("| scenario | invocations | about |\n|---|---|---|".into());
    for scenario in scenarios {
        line(format!("| {} | {} | {} |", scenario.name, scenario.compared().count(), scenario.about));
    }
    line("\n## Differences, each with its reason\n".into());
    if explained.is_empty() {
        line("None.".into());
    } else {
        line("| invocation | what differs | why |\n|---|---|---|".into());
        for entry in explained {
            let run = entry.run.trim().replace('|', "\\|").replace('\n', " ");
            line(format!("| {}: `{run}` | {} | {} |", entry.scenario, entry.what, entry.reason.trim()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_up_to_date() {
        let page = page(&scenario::load().unwrap(), &load().unwrap());
        let written = std::fs::read_to_string(page_path()).unwrap_or_default();
        assert!(written == page, "run `cargo xtask kubectl-parity --write-docs`");
    }

    #[test]
    fn every_explanation_names_a_step() {
        let scenarios = scenario::load().unwrap();
        for entry in load().unwrap() {
            let known = scenarios.iter().filter(|scenario| scenario.name == entry.scenario);
            assert!(known.flat_map(Scenario::compared).any(|step| step.run == entry.run), "{}", entry.run);
        }
    }
}
