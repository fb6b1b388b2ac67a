//! The table in docs/dev/interop.md: the result of every suite in the last `interop --all`.

use std::path::Path;

use anyhow::{Context, Result};

use super::Outcome;
use super::history::{PAGE, shown};

/// Only the lines between these two are generated.
const BEGIN: &str = "<!-- written by `cargo xtask interop --all` -->";
const END: &str = "<!-- end -->";

/// Replaces the table of the page.
pub fn write(root: &Path, outcomes: &[Outcome]) -> Result<()> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page = replaced(&page, &rows(outcomes)).with_context(|| path.display().to_string())?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("wrote {PAGE}");
    Ok(())
}

/// One row per suite.
fn rows(outcomes: &[Outcome]) -> String {
    let mut text =
        "| suite | compared with | result | duration | commit |\n|---|---|---|---|---|\n".to_owned();
    for Outcome { suite, passed, took, commit, .. } in outcomes {
        let commit = commit.as_deref().unwrap_or_default();
        text += &format!(
            "| `{}` | {} | {} | {} | `{}` |\n",
            suite.name,
            suite.against_labels(),
            if *passed { "passed" } else { "FAILED" },
            shown(*took),
            &commit[..12.min(commit.len())],
        );
    }
    text
}

fn replaced(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::suites::find;
    use super::*;

    #[test]
    fn only_lines_between_the_markers_are_replaced() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let wanted = format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), wanted);
        assert!(replaced("no markers", "new").is_err());
    }

    #[test]
    fn a_row_has_the_commit_of_its_run() {
        let outcome = |passed, commit: &str| Outcome {
            name: "crash".to_owned(),
            suite: find("crash").unwrap(),
            passed,
            took: Duration::from_secs(80),
            commit: Some(commit.to_owned()),
        };
        let rows = rows(&[outcome(true, "0123456789abcdef"), outcome(false, "fedcba98")]);
        assert!(rows.contains("| passed | 1 m 20 s | `0123456789ab` |"), "{rows}");
        assert!(rows.contains("| FAILED | 1 m 20 s | `fedcba98` |"), "{rows}");
    }
}
