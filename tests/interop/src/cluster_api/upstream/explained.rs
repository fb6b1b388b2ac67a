//! Errors that the managers log on any API server, by cause, each with its reason.

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;

const FILE: &str = include_str!("../../../../upstream/explained.yaml");

/// A cause that is not a fault of the server.
#[derive(Debug)]
pub struct Explanation {
    pub name: String,
    cause: Regex,
    when: When,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    cause: String,
    #[serde(default)]
    when: When,
    reason: String,
}

/// In which runs an explanation applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum When {
    #[default]
    Always,
    /// Other programs used much of the machine.
    Busy,
}

pub fn load() -> Result<Vec<Explanation>> {
    let entries: Vec<Entry> = serde_saphyr::from_str(FILE).context("tests/upstream/explained.yaml")?;
    entries
        .into_iter()
        .map(|entry| {
            anyhow::ensure!(!entry.reason.trim().is_empty(), "{}: no reason", entry.name);
            let cause = Regex::new(&entry.cause).with_context(|| entry.name.clone())?;
            Ok(Explanation { name: entry.name, cause, when: entry.when })
        })
        .collect()
}

/// The explanations of every cause of an error, or the first cause without one.
pub fn explain<'a>(all: &'a [Explanation], error: &str, busy: bool) -> Result<Vec<&'a str>, String> {
    causes(error)
        .into_iter()
        .map(|cause| {
            all.iter()
                .filter(|entry| busy || entry.when == When::Always)
                .find(|entry| entry.cause.is_match(&cause))
                .map(|entry| entry.name.as_str())
                .ok_or(cause)
        })
        .collect()
}

/// The causes of an error. Go joins several as `[one, two]`, each wrapped in any number of `…: `.
fn causes(error: &str) -> Vec<String> {
    let Some((before, inside, after)) = brackets(error) else { return vec![error.trim().to_owned()] };
    let mut out = Vec::new();
    // Text after a list belongs to its last member. Text before it may be a member of its own.
    if let Some((first, _)) = before.rsplit_once(", ") {
        out.extend(causes(first));
    }
    let members = split(inside);
    for member in members {
        out.extend(causes(&member));
    }
    if !after.trim_start_matches([',', ' ', ']']).is_empty() {
        out.extend(causes(after.trim_start_matches([',', ' '])));
    }
    out
}

/// The outermost list of an error, if it has one. `[::]` is an address.
fn brackets(error: &str) -> Option<(&str, &str, &str)> {
    let start = error.match_indices('[').map(|(at, _)| at).find(|at| !error[*at..].starts_with("[::"))?;
    let mut depth = 0usize;
    for (at, character) in error[start..].char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&error[..start], &error[start + 1..start + at], &error[start + at + 1..]));
        }
    }
    None
}

/// Members of a list: split at commas outside nested lists that start a new sentence.
fn split(list: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0usize;
    let mut rest = list;
    while let Some(character) = rest.chars().next() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0
            && let Some(next) = rest.strip_prefix(", ")
        {
            out.push(String::new());
            rest = next;
            continue;
        }
        if let Some(last) = out.last_mut() {
            last.push(character);
        }
        rest = &rest[character.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_split_into_its_causes() {
        let cases = [
            ("a: b: c", vec!["a: b: c"]),
            ("[a: x, b: y]", vec!["a: x", "b: y"]),
            ("f: [a: x, b: [c, d]]", vec!["a: x", "c", "d"]),
            ("accept tcp [::]:<n>: closed", vec!["accept tcp [::]:<n>: closed"]),
        ];
        for (error, wanted) in cases {
            assert_eq!(causes(error), wanted, "{error}");
        }
    }

    #[test]
    fn one_unexplained_cause_is_enough() {
        let all = load().unwrap();
        let down = "connection to the workload cluster is down";
        assert!(explain(&all, &format!("[a: {down}, b: {down}]"), false).is_ok());
        let mixed = format!("[a: {down}, the server has forgotten everything]");
        assert_eq!(explain(&all, &mixed, true), Err("the server has forgotten everything".to_owned()));
    }

    #[test]
    fn slowness_is_an_explanation_on_a_busy_machine_only() {
        let all = load().unwrap();
        let slow = "f: Patch \"https://<server>/apis/x\": context deadline exceeded";
        assert!(explain(&all, slow, false).is_err());
        assert!(explain(&all, slow, true).is_ok());
    }
}
