//! The code map in ARCHITECTURE.md: every crate is in it, from the bottom up.

use anyhow::{Context, Result};

use super::floors::{Package, position};
use super::{Finding, text};

const MAP: &str = "ARCHITECTURE.md";

pub fn check(packages: &[Package]) -> Result<Vec<Finding>> {
    let text = text(MAP)?.with_context(|| format!("{MAP} is not UTF-8"))?;
    let folders: Vec<&str> = packages.iter().map(|package| package.folder.as_str()).collect();
    Ok(compare(&listed(&text), &folders))
}

/// The folders of the first block: a line without indent names one, and lines below it with two spaces are in that.
fn listed(text: &str) -> Vec<String> {
    let mut above = "";
    let mut all = Vec::new();
    for line in text.lines().skip_while(|line| !line.starts_with("```")).skip(1) {
        let Some(name) = line.split_whitespace().next() else { continue };
        match line.len() - line.trim_start().len() {
            0 if name == "```" => break,
            0 => {
                above = name.trim_end_matches('/');
                all.push(above.to_owned());
            }
            2 => all.push(format!("{above}/{name}")),
            // A description goes on.
            _ => {}
        }
    }
    all
}

fn compare(listed: &[String], folders: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let missing = folders.iter().filter(|folder| !listed.iter().any(|known| known == *folder));
    findings.extend(missing.map(|folder| (folder.to_string(), format!("is not in the map of {MAP}"))));
    let crates = listed.iter().filter(|known| folders.contains(&known.as_str()));
    let mut highest = None;
    for known in crates {
        let own = position(known);
        if own < highest {
            findings.push((known.clone(), format!("stands in the map of {MAP} after what it must not use")));
        }
        highest = highest.max(own);
    }
    findings.into_iter().map(|(place, what)| Finding { place, what }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n\n```\ncrates/kubernetes/  a library\n  store   durable\n            and fast\n  cel     a language\nxtask/  all\n```\nafter\n";

    fn places(folders: &[&str]) -> Vec<String> {
        compare(&listed(TEXT), folders).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn folders_and_the_crates_in_them_are_read() {
        assert_eq!(
            listed(TEXT),
            ["crates/kubernetes", "crates/kubernetes/store", "crates/kubernetes/cel", "xtask"]
        );
    }

    #[test]
    fn a_crate_that_the_map_lacks_is_found() {
        assert!(places(&["crates/kubernetes/store", "crates/kubernetes/cel", "xtask"]).is_empty());
        assert_eq!(places(&["crates/kubernetes/store", "crates/view"]), ["crates/view"]);
    }

    #[test]
    fn a_crate_above_its_floor_is_found() {
        let listed = ["xtask".to_owned(), "crates/kubernetes/cel".to_owned()];
        let findings = compare(&listed, &["xtask", "crates/kubernetes/cel"]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "crates/kubernetes/cel");
    }
}
