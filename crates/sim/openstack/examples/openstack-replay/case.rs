//! Recorded exchanges.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// Parts of a difference that say that work is still to be done here.
pub const UNFINISHED: &[&str] = &[
    "recorded \"ACTIVE\", ours \"PENDING",
    "ours \"processing\"",
    "currently extending",
    "already has a default pool\", ours \"Load",
    "already has a health monitor\", ours \"Pool",
    "recorded \"available\", ours \"",
];

#[derive(Debug, Deserialize)]
pub struct Case {
    pub case: String,
    pub seq: u64,
    at: String,
    pub actor: String,
    pub service: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub request_body: Value,
    pub http_status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub response: Value,
    #[serde(default)]
    poll: Option<Value>,
}

pub fn read(text: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case: Case =
            serde_json::from_str(line).with_context(|| format!("line {} of the recording", index + 1))?;
        cases.push(case);
    }
    cases.sort_by_key(|case| case.seq);
    Ok(cases)
}

impl Case {
    pub fn time(&self) -> Result<jiff::Timestamp> {
        self.at.parse().with_context(|| format!("the time of {}", self.case))
    }

    /// The state that a poll ended in.
    pub fn poll_state(&self) -> Option<String> {
        let state = &self.poll.as_ref()?["state"];
        Some(state.as_str().map_or_else(|| state.to_string(), str::to_owned))
    }

    /// Whether the order of a list was asked for.
    pub fn is_sorted(&self) -> bool {
        self.path.contains("sort")
    }
}
