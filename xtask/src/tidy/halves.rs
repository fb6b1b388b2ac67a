//! The halves of a controller: `observe` reads, `decide` decides, and they meet in data only.
//!
//! Neither uses the other: not by name, and not by way of third files of the controller's folder. What a folder's `mod.rs`
//! defines or re-exports as a type is data; a function that it re-exports belongs to the file that has it.

mod paths;
mod reach;

use anyhow::Result;

use super::{Finding, text};
use reach::Module;

pub fn check(files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut modules = Vec::new();
    let controllers = reach::controllers(files);
    for file in files.iter().filter(|file| file.starts_with("crates/") && file.ends_with(".rs")) {
        let Some(text) = text(file)? else { continue };
        if let Some(other) = other_half(file) {
            findings.extend(imports(file, &text, other));
        }
        if controllers
            .iter()
            .any(|folder| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
        {
            modules.extend(Module::of(file, &text));
        }
    }
    findings.extend(reach::circles(&modules.into_iter().collect()));
    Ok(findings)
}

/// The module that a file must not use: by its own name, or that of a folder that it is in.
fn other_half(file: &str) -> Option<&'static str> {
    let (_, path) = file.split_once("/src/")?;
    path.trim_end_matches(".rs").split('/').find_map(|part| match part {
        "observe" | "observed" => Some("decide"),
        "decide" => Some("observe"),
        _ => None,
    })
}

/// Lines that use the other half: a path through it, or its name in an import.
fn imports(file: &str, text: &str, other: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_import = false;
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        in_import |= code.starts_with("use ") || code.starts_with("pub") && code.contains(" use ");
        if names(code, other, in_import) {
            let what = format!("uses {other}: move what both need to `observed` or a module of its own");
            findings.push(Finding { place: format!("{file}:{number}"), what });
        }
        in_import &= !code.ends_with(';');
    }
    findings
}

fn names(code: &str, module: &str, in_import: bool) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(module).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        let is_path = after.starts_with("::") && !after.starts_with("::<");
        !before.ends_with(is_part) && !after.starts_with(is_part) && (is_path || in_import)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_known_by_file_and_by_folder() {
        for (file, other) in [
            ("crates/a/src/machine/observe.rs", Some("decide")),
            ("crates/a/src/machine/observed/node.rs", Some("decide")),
            ("crates/a/src/machine/decide/scale.rs", Some("observe")),
            ("crates/a/src/machine/mod.rs", None),
            ("crates/observe/src/lib.rs", None),
        ] {
            assert_eq!(other_half(file), other, "{file}");
        }
    }

    #[test]
    fn a_half_that_uses_the_other_is_found() {
        for (code, lines) in [
            ("use super::decide::waits;", 1),
            ("use super::{\n    a,\n    decide, b,\n};\nlet decide = 1;", 1),
            ("let rule = super::decide::rule(object);", 1),
            ("use super::decides;\nfn decide() {}\n// decide::rule", 0),
            ("let all = Members::decide::<Machine>(view);", 0),
        ] {
            assert_eq!(imports("observe.rs", code, "decide").len(), lines, "{code}");
        }
    }
}
