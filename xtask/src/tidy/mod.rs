//! `cargo xtask tidy`: house rules that no compiler checks. Takes a second; needs no network and no history.

mod clouds;
mod files;
mod floors;
mod halves;
mod map;
mod strings;
mod words;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

pub use floors::packages;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File, line or dependency. Exceptions use the same form.
    pub place: String,
    pub what: String,
}

/// A tolerated finding, with its reason. An exception that matches no finding is itself a finding.
#[derive(Debug)]
pub struct Exception {
    pub place: &'static str,
    pub reason: &'static str,
}

pub fn run() -> Result<()> {
    let files = tracked_files()?;
    let packages = packages()?;
    let mut findings = without_exceptions(floors::check(&packages), floors::EXCEPTIONS);
    findings.extend(map::check(&packages)?);
    findings.extend(halves::check(&files)?);
    findings.extend(without_exceptions(files::check(&files)?, files::EXCEPTIONS));
    findings.extend(without_exceptions(words::check(&files)?, words::EXCEPTIONS));
    findings.extend(clouds::check(&files)?);
    for finding in &findings {
        println!("{}: {}", finding.place, finding.what);
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    println!("tidy: {} files, no findings", files.len());
    Ok(())
}

/// Findings without an exception, and exceptions without a finding.
fn without_exceptions(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let idle = exceptions.iter().filter(|one| !findings.iter().any(|finding| finding.place == one.place));
    let mut all: Vec<_> = idle
        .map(|one| Finding {
            place: one.place.to_owned(),
            what: format!("unused exception ({}): remove it from xtask/src/tidy", one.reason),
        })
        .collect();
    all.extend(findings.into_iter().filter(|found| !exceptions.iter().any(|one| one.place == found.place)));
    all
}

/// Paths of all files in the repository.
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
        bail!("git lists no files");
    }
    Ok(files)
}

/// Content of a file, or `None` if it is not UTF-8.
fn text(path: &str) -> Result<Option<String>> {
    let bytes = std::fs::read(cargo::root().join(path)).with_context(|| path.to_owned())?;
    Ok(String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_covers_one_finding_and_must_be_used() {
        let found = |place: &str| Finding { place: place.to_owned(), what: "is wrong".to_owned() };
        let exceptions = [Exception { place: "a", reason: "old" }, Exception { place: "b", reason: "gone" }];
        let all = without_exceptions(vec![found("a"), found("c")], &exceptions);
        let places: Vec<_> = all.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["b", "c"]);
    }
}
