//! Lengths of files, and of a folder whose length the documentation promises.

use anyhow::Result;

use super::{Exception, Finding, text};

/// Longest file, in lines, that needs no reason.
const MOST: usize = 800;
/// Prefix of the reason, in the first lines of the file.
const REASON: &str = "Long because";
const HEAD: usize = 15;
/// Folders that are shown as short examples, the most lines that their files have together, and who promises it.
const EXAMPLES: &[(&str, usize, &str)] = &[("tests/toy-provider/src/", 300, "docs/dev/providers.md")];

pub const EXCEPTIONS: &[Exception] = &[];

pub fn check(files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut examples = [0; EXAMPLES.len()];
    for path in files.iter().filter(|path| is_code(path)) {
        let Some(text) = text(path)? else { continue };
        for ((folder, ..), lines) in EXAMPLES.iter().zip(&mut examples) {
            if path.starts_with(folder) {
                *lines += text.lines().count();
            }
        }
        if is_too_long(&text) {
            let what = format!(
                "{} lines: split it, or give the reason in its first lines (`{REASON} …`)",
                text.lines().count()
            );
            findings.push(Finding { place: path.clone(), what });
        }
    }
    findings
        .extend(EXAMPLES.iter().zip(examples).filter_map(|(example, lines)| not_as_promised(example, lines)));
    Ok(findings)
}

fn not_as_promised((folder, most, promised): &(&str, usize, &str), lines: usize) -> Option<Finding> {
    let what = match lines {
        0 => "has no files: remove it from xtask/src/tidy/files.rs".to_owned(),
        lines if lines > *most => format!("{lines} lines: {promised} promises at most {most}"),
        _ => return None,
    };
    Some(Finding { place: (*folder).to_owned(), what })
}

fn is_code(path: &str) -> bool {
    [".rs", ".go", ".py", ".sh"].iter().any(|end| path.ends_with(end))
}

fn is_too_long(text: &str) -> bool {
    text.lines().count() > MOST && !text.lines().take(HEAD).any(|line| line.contains(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_needs_a_reason_in_its_head() {
        let long = "line\n".repeat(MOST + 1);
        assert!(is_too_long(&long));
        assert!(!is_too_long(&"line\n".repeat(MOST)));
        assert!(!is_too_long(&format!("//! Long because it is a table.\n{long}")));
        assert!(is_too_long(&format!("{long}//! Long because it is a table.\n")));
    }

    #[test]
    fn an_example_is_as_short_as_the_documentation_says() {
        let example = ("tests/example/src/", 300, "docs/dev/example.md");
        assert!(not_as_promised(&example, 300).is_none());
        assert!(not_as_promised(&example, 301).is_some_and(|found| found.what.contains("301 lines")));
        assert!(not_as_promised(&example, 0).is_some());
    }
}
