//! The table in docs/dev/interop.md: the last result of every suite in runs of `interop --all`.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::history::{PAGE, shown};
use super::suites::SUITES;

/// Only the lines between these two are generated.
const BEGIN: &str = "<!-- written by `cargo xtask interop --all` -->";
const END: &str = "<!-- end -->";

/// Updates the table of the page. Suites without an outcome keep their rows.
pub fn write(root: &Path, outcomes: &[Outcome]) -> Result<()> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page = updated(&page, outcomes).with_context(|| path.display().to_string())?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

fn updated(page: &str, outcomes: &[Outcome]) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("no line {BEGIN}"))?;
    let (old, after) = rest.split_once(END).with_context(|| format!("no line {END}"))?;
    let mut table =
        "| suite | compared with | result | duration | commit |\n|---|---|---|---|---|\n".to_owned();
    for suite in SUITES {
        let outcome = outcomes.iter().find(|one| one.suite.name == suite.name);
        let kept = || old.lines().find(|line| line.starts_with(&format!("| `{}` |", suite.name)));
        if let Some(row) = outcome.map(row).or_else(|| kept().map(String::from)) {
            table += &row;
            table.push('\n');
        }
    }
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

fn row(Outcome { suite, passed, took, commit, .. }: &Outcome) -> String {
    let commit = commit.as_deref().unwrap_or_default();
    format!(
        "| `{}` | {} | {} | {} | `{}` |",
        suite.name,
        suite.against_labels(),
        if *passed { "passed" } else { "FAILED" },
        shown(*took),
        &commit[..12.min(commit.len())],
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::suites::find;
    use super::*;

    fn outcome(suite: &str, passed: bool, commit: &str) -> Outcome {
        Outcome {
            name: suite.to_owned(),
            suite: find(suite).unwrap(),
            passed,
            took: Duration::from_secs(80),
            commit: Some(commit.to_owned()),
        }
    }

    #[test]
    fn only_lines_between_the_markers_are_replaced() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let page = updated(&page, &[outcome("crash", true, "0123456789abcdef")]).unwrap();
        assert!(page.starts_with(&format!("before\n{BEGIN}\n\n| suite |")), "{page}");
        assert!(
            page.ends_with(&format!("| passed | 1 m 20 s | `0123456789ab` |\n\n{END}\nafter\n")),
            "{page}"
        );
        assert!(updated("no markers", &[]).is_err());
    }

    #[test]
    fn suites_that_did_not_run_keep_their_rows() {
        let page =
            updated(&format!("{BEGIN}\n{END}"), &[outcome("crash", true, "0123456789abcdef")]).unwrap();
        let page = updated(&page, &[outcome("demo", false, "fedcba98")]).unwrap();
        assert!(page.contains("| passed | 1 m 20 s | `0123456789ab` |"), "{page}");
        assert!(page.contains("| FAILED | 1 m 20 s | `fedcba98` |"), "{page}");
    }
}
