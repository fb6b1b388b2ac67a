//! Words of the glossary's "not" column, and host names that no file may contain.

use anyhow::Result;

use super::{Exception, Finding, text};

/// What to write, and the phrases it replaces. A phrase joins the list when its last use is gone.
const PHRASES: &[(&str, &[&str])] = &[
    ("requeue, retry, back off", &["look again", "looks again"]),
    ("conflict, stale", &["overtaken", "quarrel", "quarrels"]),
    ("default, fallback", &["usually"]),
    ("cache, inventory, snapshot", &["sight", "glance"]),
    ("simulation run", &["disturbed life", "disturbed lives"]),
    ("ready, desired state", &["as wanted", "does well", "do well"]),
    ("fixed by, fix", &["whose turn", "how to mend"]),
];

/// Hosts of package registries. They belong to the settings of a machine, not into a repository.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("sum.golang", ".org"),
    concat!("deb.debian", ".org"),
];

pub const EXCEPTIONS: &[Exception] = &[];

pub fn check(files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in files {
        // Cargo writes the name of the registry into its lock files.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        let Some(text) = text(path)? else { continue };
        for (number, line) in text.lines().enumerate() {
            let mut found =
                |what: String| findings.push(Finding { place: format!("{path}:{}", number + 1), what });
            if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
                found(format!("{host} is the host name of a package registry"));
            }
            if let Some(words) = read_by_users(path, line)
                && let Some((phrase, instead)) = forbidden(words)
            {
                found(format!("\"{phrase}\": write {instead}"));
            }
        }
    }
    Ok(findings)
}

/// What users read of a line: pages of the docs, and doc comments of the binary, which are its help.
fn read_by_users<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let is_page = path == "README.md" || (path.starts_with("docs/") && !path.starts_with("docs/dev/"));
    if is_page && path.ends_with(".md") {
        return Some(line);
    }
    let is_command_line = path.starts_with("capstan/src/") && path.ends_with(".rs");
    line.trim_start().strip_prefix("/// ").filter(|_| is_command_line)
}

/// The first forbidden phrase of a text, and what to write instead.
fn forbidden(text: &str) -> Option<(&'static str, &'static str)> {
    let lower = text.to_lowercase();
    PHRASES
        .iter()
        .flat_map(|(instead, phrases)| phrases.iter().map(move |phrase| (*phrase, *instead)))
        .find(|(phrase, _)| has_phrase(&lower, phrase))
}

/// Whether a text contains a phrase as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(is_letter) && !text[at + phrase.len()..].starts_with(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words() {
        assert!(has_phrase("at first sight.", "sight"));
        assert!(!has_phrase("insight", "sight"));
        assert!(!has_phrase("sightings", "sight"));
    }

    #[test]
    fn pages_and_help_are_read_and_other_code_is_not() {
        assert!(read_by_users("docs/cli.md", "a sight").is_some());
        assert!(read_by_users("docs/dev/interop.md", "a sight").is_none());
        assert_eq!(read_by_users("capstan/src/up.rs", "    /// Look again"), Some("Look again"));
        assert!(read_by_users("capstan/src/up.rs", "let sight = 1;").is_none());
        assert!(read_by_users("crates/view/src/lib.rs", "/// sight").is_none());
    }
}
