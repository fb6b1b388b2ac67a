//! The selected tests: names of upstream's tests that need no node.

use anyhow::{Result, bail};

const TESTS: &str = include_str!("../../../../e2e/no-nodes.txt");

/// Names of the tests to run.
pub fn chosen(only: Option<&str>) -> Result<Vec<String>> {
    let names: Vec<_> = TESTS
        .lines()
        .filter(|name| !name.is_empty())
        .filter(|name| only.is_none_or(|text| name.contains(text)))
        .map(String::from)
        .collect();
    if names.is_empty() {
        bail!("no test of tests/e2e/no-nodes.txt matches");
    }
    Ok(names)
}
