//! `cargo xtask tidy`: house rules that no compiler checks. Takes a second; needs no network and no history.

mod files;
mod floors;
mod words;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What breaks it, as exceptions name it.
    pub place: String,
    pub what: String,
}

/// A finding that is tolerated, with its reason. One that no longer occurs is a finding itself.
#[derive(Debug)]
pub struct Exception {
    pub place: &'static str,
    pub reason: &'static str,
}

pub fn run() -> Result<()> {
    let files = tracked_files()?;
    let mut findings = excused(floors::check(&floors::packages()?), floors::EXCEPTIONS);
    findings.extend(excused(files::check(&files)?, files::EXCEPTIONS));
    findings.extend(excused(words::check(&files)?, words::EXCEPTIONS));
    for finding in &findings {
        println!("{}: {}", finding.place, finding.what);
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    println!("tidy: {} files, nothing found", files.len());
    Ok(())
}

/// Findings without an exception, and exceptions without a finding.
fn excused(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let idle = exceptions.iter().filter(|one| !findings.iter().any(|finding| finding.place == one.place));
    let mut all: Vec<_> = idle
        .map(|one| Finding {
            place: one.place.to_owned(),
            what: format!(
                "the exception ({}) is not needed any more: remove it from xtask/src/tidy",
                one.reason
            ),
        })
        .collect();
    all.extend(findings.into_iter().filter(|found| !exceptions.iter().any(|one| one.place == found.place)));
    all
}

/// Paths of all files of the repository.
fn tracked_files() -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(cargo::root())
        .output()
        .context("run git")?;
    let text = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    let files: Vec<_> =
        text.split('\0').filter(|path| cargo::root().join(path).is_file()).map(String::from).collect();
    if files.is_empty() {
        bail!("git knows of no files here");
    }
    Ok(files)
}

/// The text of a file, or nothing if it is no text.
fn text(path: &str) -> Result<Option<String>> {
    let bytes = std::fs::read(cargo::root().join(path)).with_context(|| path.to_owned())?;
    Ok(String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_excuses_one_place_and_must_be_needed() {
        let found = |place: &str| Finding { place: place.to_owned(), what: "is wrong".to_owned() };
        let exceptions = [Exception { place: "a", reason: "old" }, Exception { place: "b", reason: "gone" }];
        let all = excused(vec![found("a"), found("c")], &exceptions);
        let places: Vec<_> = all.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["b", "c"]);
    }
}
