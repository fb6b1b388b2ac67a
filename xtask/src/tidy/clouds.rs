//! The program knows clouds as providers: it names them in its list and in the demo's choice, and nowhere else.

use anyhow::Result;

use super::{Finding, text};

const PROGRAM: &str = "capstan/src/";
const MAY: [&str; 2] = ["capstan/src/providers.rs", "capstan/src/demo/choice.rs"];
const CLOUDS: [&str; 3] = ["cloudstack", "openstack", "kvm"];

pub fn check(files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.starts_with(PROGRAM) && !MAY.contains(&file.as_str())) {
        let Some(text) = text(file)? else { continue };
        findings.extend(named(file, &text));
    }
    Ok(findings)
}

/// Lines that name a cloud.
fn named(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.to_lowercase();
        if let Some(cloud) = CLOUDS.iter().find(|cloud| line.contains(**cloud)) {
            let what = format!("names {cloud}: ask its provider, or use another example");
            findings.push(Finding { place: format!("{file}:{number}"), what });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_cloud_is_found() {
        let findings = named("a.rs", "let a = 1;\nlet b = \"CloudStackMachine\";\n");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "a.rs:2");
    }
}
