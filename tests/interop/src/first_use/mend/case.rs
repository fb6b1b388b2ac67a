//! Broken clusters: `tests/mend/cases.yaml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use regex::{Captures, Regex};
use serde::Deserialize;

use crate::cargo;

/// The longest file that a bootstrap configuration accepts. Five of them are more than CloudStack accepts as user data.
const LONG: usize = 10_240;

/// One way to break a cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// For the page.
    pub symptom: String,
    /// Replacements in the manifest.
    #[serde(default)]
    pub change: Vec<(String, String)>,
    /// Shell, before the cluster is created.
    #[serde(default)]
    pub before: String,
    /// Shell, when the cluster is ready.
    #[serde(default)]
    pub after: String,
    /// What `why` has to say.
    pub why: Vec<String>,
    /// Values for words of the printed commands that the user chooses.
    #[serde(default)]
    pub fill: BTreeMap<String, String>,
    /// Shell, where nobody with the manifest can fix it.
    #[serde(default)]
    pub fix: String,
    /// No other case at the same time.
    #[serde(default)]
    pub alone: bool,
    /// A sed script for `kubectl edit`.
    #[serde(default)]
    pub editor: String,
}

impl Case {
    pub fn all() -> Result<Vec<Self>> {
        let file = cargo::root().join("tests/mend/cases.yaml");
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("{}", file.display()))
    }

    /// Name of its cluster: no word that a message may have.
    pub fn cluster(&self) -> String {
        format!("{}-c", self.name)
    }

    /// Whether it changes the cloud for everybody.
    pub fn is_alone(&self) -> bool {
        self.alone || self.before.starts_with("ctl ")
    }

    /// The sample cluster with the changes of this case: one control plane machine and one worker.
    pub fn manifest(&self, sample: &str, endpoint_port: u16) -> Result<String> {
        let mut text = Regex::new(r"\bdemo\b")?
            .replace_all(sample, self.cluster().as_str())
            .replace("port: 16443", &format!("port: {endpoint_port}"))
            .replace("replicas: 3", "replicas: 1");
        for (from, to) in &self.change {
            let from = from.replace("$CLUSTER", &self.cluster());
            ensure!(text.contains(&from), "{}: the sample has no {from:?}", self.name);
            let mut to = to.replace("$CLUSTER", &self.cluster());
            for seed in 1.. {
                match to.contains("$LONG") {
                    true => to = to.replacen("$LONG", &noise(seed), 1),
                    false => break,
                }
            }
            text = text.replace(&from, &to);
        }
        Ok(text)
    }

    /// A printed command with the values that a user would put in.
    pub fn filled(&self, command: &str) -> Result<String> {
        let mut text = command.to_owned();
        for (word, value) in &self.fill {
            let pattern = Regex::new(&format!(r"(^|[^\w$]){}($|\W)", regex::escape(word)))?;
            let put = |found: &Captures<'_>| format!("{}{value}{}", &found[1], &found[2]);
            text = pattern.replace_all(&text, put).into_owned();
        }
        Ok(text)
    }
}

/// Text that does not compress well.
fn noise(seed: u64) -> String {
    let mut state: u64 = seed;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(
            b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[(state >> 33) as usize % 62],
        )
    };
    (0..LONG).map(|_| letter()).collect()
}

/// The problems of an answer of `why` that have all of these words; others may be transient, such as a CNI that is not
/// installed yet, and their chain may name the same objects.
pub fn problems<'a>(answer: &'a str, words: &[String]) -> Vec<&'a str> {
    let starts = answer.match_indices("\nproblem ").map(|(at, _)| at);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts.iter().skip(1).copied().chain([answer.len()]);
    let all = starts.iter().zip(ends).map(|(start, end)| &answer[*start..end]);
    all.filter(|problem| words.iter().all(|word| problem.contains(word.as_str()))).collect()
}

/// The commands that an answer of `why`, or a problem of it, prints below a fix.
pub fn commands(answer: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut below = false;
    for line in answer.lines() {
        below = line.starts_with("fix: ") || (below && line.starts_with("  "));
        found.extend(line.strip_prefix("  ").filter(|_| below).map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_changes_the_sample_and_has_a_name_of_its_own() {
        let cases = Case::all().unwrap();
        assert!(cases.len() >= 40, "{}", cases.len());
        let sample = std::fs::read_to_string(crate::bed::cluster::example("demo.yaml")).unwrap();
        let mut names = std::collections::BTreeSet::new();
        for case in &cases {
            assert!(names.insert(&case.name), "{}", case.name);
            assert!(!case.why.is_empty(), "{}", case.name);
            let breaks = !case.change.is_empty() || !case.before.is_empty() || !case.after.is_empty();
            assert!(breaks, "{} breaks nothing", case.name);
            case.manifest(&sample, 6443).unwrap();
        }
    }

    #[test]
    fn commands_stand_below_a_fix_and_words_in_capitals_are_replaced() {
        let answer =
            "c is not ready\n\nfix: do this\n  one NAME=X\n  two\nfixed by: user\n\nc: x\n  because\n";
        assert_eq!(commands(answer), ["one NAME=X", "two"]);
        let two =
            "c: 2 problems\n\nproblem 1 of 2: x\nfix: a\n  one\n\nproblem 2 of 2: y of x\nfix: b\n  two\n";
        let found = problems(two, &["x".to_owned(), "y".to_owned()]);
        assert_eq!(found.iter().flat_map(|it| commands(it)).collect::<Vec<_>>(), ["two"]);
        let case: Case =
            serde_saphyr::from_str("{name: a, symptom: b, why: [c], fill: {NAME: n, N: '1'}}").unwrap();
        assert_eq!(case.filled("set x=NAME workers=N $NAME").unwrap(), "set x=n workers=1 $NAME");
    }
}
