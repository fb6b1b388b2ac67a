//! Lengths of files.

use anyhow::Result;

use super::{Exception, Finding, text};

/// Longest file, in lines, that needs no reason.
const MOST: usize = 800;
/// Prefix of the reason, in the first lines of the file.
const REASON: &str = "Long because";
const HEAD: usize = 15;

pub const EXCEPTIONS: &[Exception] = &[];

pub fn check(files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| is_code(path)) {
        let Some(text) = text(path)? else { continue };
        if is_too_long(&text) {
            let what = format!(
                "{} lines: split it, or give the reason in its first lines (`{REASON} …`)",
                text.lines().count()
            );
            findings.push(Finding { place: path.clone(), what });
        }
    }
    Ok(findings)
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
}
