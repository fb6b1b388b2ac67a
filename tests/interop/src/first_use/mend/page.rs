//! `docs/mends.md`: symptom, what `why` says, fix, result.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use super::case::{Case, commands, problems};
use crate::cargo;

const HEAD: &str = "# Fixes by symptom

<!-- Written by `cargo xtask mend --write`, which breaks a cluster in each of these ways and runs the fix. -->

What `capstan why NAME` prints for a broken cluster, and the fix that it prints. Words in capitals are for you to replace.
Every row was tried on a simulated CloudStack: after the fix the cluster is ready.

| symptom | `why` says | fix | result |
|---|---|---|---|
";

/// One row. Generated parts of names are left out, so that every run gives the same row.
pub fn row(case: &Case, answer: &str) -> Result<String> {
    let answer = problems(answer, &case.why).first().copied().unwrap_or(answer);
    let line = |start: &str| answer.lines().find_map(|line| line.strip_prefix(start));
    let code = answer.lines().find(|line| line.starts_with("E-")).map(str::to_owned);
    let first = answer.lines().find(|line| !line.is_empty()).unwrap_or_default();
    // "Cluster/NAME is not ready: X", or "Cluster/NAME is ready, but X", whichever it is at that moment.
    let verdict = first.split_once(": ").or_else(|| first.split_once(", but "));
    let says = code.unwrap_or_else(|| verdict.map_or(first, |it| it.1).to_owned());
    let fix = line("fix: ").unwrap_or_default();
    let printed: Vec<String> =
        commands(answer).iter().map(|command| format!("<br>`{}`", command.replace('|', "\\|"))).collect();
    let by = match case.fix.split_whitespace().next() {
        None => printed.concat(),
        Some("ctl") => " (the cloud's operator)".to_owned(),
        Some(_) => format!("{}, then correct what it shows", printed.concat()),
    };
    let row = format!("| {} | {says} | {fix}{by} | ready |", case.symptom);
    let generated =
        Regex::new(&format!(r"\b({}(?:-workers)?)(?:-[a-z0-9]{{5}})+\b", regex::escape(&case.cluster())))?;
    let named = generated.replace_all(&row, "$1-…");
    let own = Regex::new(&format!(r"\b{}\b", regex::escape(&case.cluster())))?;
    let named = own.replace_all(&named, "NAME");
    let age = Regex::new(r" for \d+[a-z0-9]*")?;
    Ok(age.replace_all(&named, "").into_owned())
}

fn file() -> PathBuf {
    cargo::root().join("docs/mends.md")
}

/// Puts rows into the page, by symptom. Rows of other cases stay; those of cases that are gone go.
pub fn write(cases: &[Case], rows: &BTreeMap<String, String>) -> Result<()> {
    let page = std::fs::read_to_string(file()).unwrap_or_default();
    let known = |case: &Case| {
        let start = format!("| {} | ", case.symptom);
        let old = || page.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
        rows.get(&case.symptom).cloned().or_else(old)
    };
    let rows: Vec<String> = cases.iter().filter_map(known).collect();
    std::fs::write(file(), format!("{HEAD}{}\n", rows.join("\n"))).context("write docs/mends.md")
}

/// Fails if a symptom is not on the page, or `why` says something else. Commands are those of the first of several
/// blockers, whichever that is.
pub fn check<'a>(rows: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let page = std::fs::read_to_string(file()).context("read docs/mends.md")?;
    let cells = |row: &str| row.splitn(4, " | ").take(2).map(str::to_owned).collect::<Vec<_>>();
    for row in rows {
        ensure!(
            page.lines().any(|line| cells(line) == cells(row)),
            "docs/mends.md is out of date, it has no row\n{row}\n`cargo xtask mend --write` writes it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_no_generated_names() {
        let case: Case =
            serde_saphyr::from_str("{name: vm-gone, symptom: machine destroyed, why: [c]}").unwrap();
        let answer = "Cluster/vm-gone-c is not ready: the machine of CloudStackMachine/vm-gone-c-workers-abcde-12345 was \
                      deleted in the cloud\n\nmessage: gone\nfix: delete it\n  capstan delete machine \
                      vm-gone-c-workers-abcde-12345 -n default --yes\nfixed by: user\n";
        assert_eq!(
            row(&case, answer).unwrap(),
            "| machine destroyed | the machine of CloudStackMachine/NAME-workers-… was deleted in the cloud | delete \
             it<br>`capstan delete machine NAME-workers-… -n default --yes` | ready |"
        );
        let ready = answer.replace("is not ready: ", "is ready, but ");
        assert_eq!(row(&case, &ready).unwrap(), row(&case, answer).unwrap());
    }

    #[test]
    fn every_case_has_a_row() {
        let page = std::fs::read_to_string(file()).unwrap();
        for case in Case::all().unwrap() {
            assert!(page.contains(&format!("| {} |", case.symptom)), "{}", case.name);
        }
    }
}
