//! The table in docs/dev/interop.md: the result of every suite in the last `interop --all`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Outcome;
use super::history::{PAGE, shown};
use super::suites::SUITES;

/// Only the lines between these two are generated.
const BEGIN: &str = "<!-- written by `cargo xtask interop --all` -->";
const END: &str = "<!-- end -->";

/// Replaces the table of the page.
pub fn write(root: &Path, outcomes: &[Outcome], commit: &str) -> Result<()> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page = replaced(&page, &rows(outcomes, commit)).with_context(|| path.display().to_string())?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("wrote {PAGE}");
    Ok(())
}

/// One row per suite. A suite with several parts has passed if all of them have.
fn rows(outcomes: &[Outcome], commit: &str) -> String {
    let mut suites: BTreeMap<&str, (bool, Duration)> = BTreeMap::new();
    for outcome in outcomes {
        let entry = suites.entry(outcome.suite.name).or_insert((true, Duration::ZERO));
        *entry = (entry.0 && outcome.passed, entry.1 + outcome.took);
    }
    let mut text =
        "| suite | compared with | result | duration | commit |\n|---|---|---|---|---|\n".to_owned();
    for suite in SUITES {
        let Some((passed, took)) = suites.get(suite.name) else { continue };
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
    use super::*;

    #[test]
    fn only_lines_between_the_markers_are_replaced() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let wanted = format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), wanted);
        assert!(replaced("no markers", "new").is_err());
    }

    #[test]
    fn a_suite_with_a_failed_part_has_failed() {
        let suite = SUITES.iter().find(|suite| suite.parts > 1).unwrap();
        let outcome = |name: &str, passed| Outcome {
            name: name.to_owned(),
            suite,
            passed,
            took: Duration::from_secs(40),
        };
        let rows = rows(&[outcome("a", true), outcome("b", false)], "0123456789abcdef");
        assert!(rows.contains("| FAILED | 1 m 20 s | `0123456789ab` |"), "{rows}");
    }
}
