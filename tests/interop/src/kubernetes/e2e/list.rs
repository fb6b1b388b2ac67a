//! The selected tests: names of upstream's tests, without the excluded ones, each of which has a reason.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

const TESTS: &str = include_str!("../../../../e2e/no-nodes.txt");
const EXCLUDED: &str = include_str!("../../../../e2e/excluded.tsv");

/// Names of the tests to run.
pub fn chosen(only: Option<&str>, all: bool) -> Result<Vec<String>> {
    let excluded = excluded()?;
    let names: Vec<_> = TESTS
        .lines()
        .filter(|name| !name.is_empty())
        .filter(|name| all || !excluded.contains_key(name))
        .filter(|name| only.is_none_or(|text| name.contains(text)))
        .map(String::from)
        .collect();
    if names.is_empty() {
        bail!("no test of tests/e2e/no-nodes.txt matches");
    }
    Ok(names)
}

fn excluded() -> Result<BTreeMap<&'static str, &'static str>> {
    EXCLUDED
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            line.split_once('\t').with_context(|| format!("tests/e2e/excluded.tsv: no reason for {line}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exclusion_names_a_listed_test_and_has_a_reason() {
        for (name, reason) in excluded().unwrap() {
            assert!(TESTS.lines().any(|test| test == name), "{name}");
            assert!(!reason.trim().is_empty(), "{name}");
        }
    }

    #[test]
    fn excluded_tests_are_not_chosen() {
        assert!(chosen(None, false).unwrap().len() < chosen(None, true).unwrap().len());
    }
}
