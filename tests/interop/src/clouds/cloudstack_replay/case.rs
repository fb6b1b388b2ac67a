//! Recorded exchanges.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub struct Case {
    pub case: String,
    at: String,
    pub actor: Option<String>,
    pub method: Option<String>,
    pub command: Option<String>,
    pub params: Option<BTreeMap<String, Value>>,
    pub path: Option<String>,
    pub http_status: Option<u16>,
    #[serde(default)]
    pub response: Value,
    pub job: Option<Value>,
    pub note: Option<Value>,
}

impl Case {
    pub fn time(&self) -> Result<jiff::Timestamp> {
        self.at.parse().with_context(|| format!("{} was recorded at {}", self.case, self.at))
    }

    /// The value of a parameter, as text.
    pub fn param(&self, name: &str) -> Option<String> {
        self.params.as_ref()?.get(name).map(text)
    }

    /// The response without its wrapper.
    pub fn body(&self) -> Option<(&str, &Value)> {
        self.response.as_object()?.iter().next().map(|(wrapper, body)| (wrapper.as_str(), body))
    }

    /// The final result of its job.
    pub fn job_end(&self) -> Option<&Value> {
        self.job.as_ref()?.pointer("/final/queryasyncjobresultresponse")
    }

    /// Whether lists were shortened when they were recorded.
    pub fn is_cut(&self) -> bool {
        self.note.as_ref().and_then(Value::as_str).is_some_and(|note| note.contains("lists cut"))
    }
}

/// A value as a parameter. Long user data was recorded as its length and its beginning.
pub fn text(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let length = text
        .strip_prefix('<')
        .and_then(|rest| rest.split_once(" chars> "))
        .and_then(|(length, _)| length.parse::<usize>().ok());
    match length {
        Some(length) => "eHh4".chars().cycle().take(length).collect(),
        None => text.clone(),
    }
}

pub fn read(text: &str) -> Result<Vec<Case>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("line {} of the recording", number + 1))
        })
        .collect()
}
