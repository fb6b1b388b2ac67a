//! Words of the glossary's "not" column in docs, comments and string literals, and host names that no file may contain.

use anyhow::Result;

use super::strings::literals;
use super::{Exception, Finding, text};

/// What to write, and the phrases it replaces.
type Phrases = &'static [(&'static str, &'static [&'static str])];

/// For every reader. A phrase joins the list when its last use is gone.
const PHRASES: Phrases = &[
    ("requeue, retry, back off", &["look again", "looks again"]),
    ("conflict, stale", &["overtaken", "quarrel", "quarrels"]),
    ("default, fallback", &["usual", "usually"]),
    ("cache, inventory, snapshot", &["sight"]),
    ("simulation run", &["disturbed life", "disturbed lives"]),
    ("error, failure, cause", &["trouble", "misfortune"]),
    ("report, record, message", &["tell", "tells", "telling", "told"]),
    ("desired state", &["as wanted", "wanted state", "what is wanted", "wish", "wishes"]),
    ("ready", &["does well", "do well"]),
    ("compared with", &["held against"]),
    ("fixed by, fix", &["whose turn", "how to mend"]),
    ("collapsed", &["folded away"]),
    ("cgroup v2", &["control groups v2"]),
];

/// For users, who must learn who acts.
const PHRASES_FOR_USERS: Phrases =
    &[("the user, the operator or another owner", &["somebody", "someone", "nobody", "whoever"])];

/// Type names that meant something else in every crate. Qualify them (`AdmissionVerdict`) or find the precise word.
const TYPE_NAMES: &[&str] = &[
    "Deeds",
    "Facts",
    "Glance",
    "Misfortune",
    "Place",
    "Said",
    "Shared",
    "Sight",
    "Story",
    "Told",
    "Trouble",
    "Verdict",
    "Wish",
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
            let words = match read_by_users(path, line) {
                Some(words) => forbidden(words, &[PHRASES, PHRASES_FOR_USERS]),
                None => comment(path, line).and_then(|words| forbidden(words, &[PHRASES])),
            };
            if let Some((phrase, instead)) = words {
                found(format!("\"{phrase}\": write {instead}"));
            }
            if let Some(name) = type_name(path, line) {
                found(format!("{name}: qualify the name or use a precise word"));
            }
        }
        for (number, literal) in literals(product_code(path, &text)) {
            if let Some((phrase, instead)) = forbidden(literal, &[PHRASES, PHRASES_FOR_USERS]) {
                let what = format!("\"{phrase}\" in a string: write {instead}");
                findings.push(Finding { place: format!("{path}:{number}"), what });
            }
        }
    }
    Ok(findings)
}

/// What users read of a line: pages of the docs, manifests that they apply or start from, and doc comments of types of
/// the API, which are their descriptions.
fn read_by_users<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let is_page = !path.contains('/') || (path.starts_with("docs/") && !path.starts_with("docs/dev/"));
    if is_page && path.ends_with(".md") {
        return Some(line);
    }
    let folder = path.split('/').next().unwrap_or_default();
    if matches!(folder, "examples" | "packaging" | "templates") && !path.ends_with(".rs") {
        return Some(line);
    }
    let is_api = path.contains("/types/src/v1") || path.starts_with("crates/doors/lifecycle/src/types/");
    line.trim_start().strip_prefix("/// ").filter(|_| is_api && path.ends_with(".rs"))
}

/// What contributors read of a line: comments, which are the help of commands too, and pages for developers. This module
/// and its glossary are exempt.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    if path.starts_with("docs/dev/") && path.ends_with(".md") {
        return Some(line);
    }
    let line = line.trim_start();
    let text = line.strip_prefix("//")?.trim_start_matches(['/', '!']);
    is_code(path).then_some(text)
}

/// The part of a file whose string literals users may read: code of the program and its crates up to the tests.
fn product_code<'a>(path: &str, text: &'a str) -> &'a str {
    let is_product = path.starts_with("capstan/src/") || path.starts_with("crates/");
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("testing");
    match is_product && !is_test && path.ends_with(".rs") {
        true => text.split("#[cfg(test)]\nmod ").next().unwrap_or_default(),
        false => "",
    }
}

/// The name of a declared type that is in [`TYPE_NAMES`].
fn type_name(path: &str, line: &str) -> Option<&'static str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find(|word| matches!(*word, "struct" | "enum" | "trait" | "type"))?;
    let declared = words.next().filter(|_| is_code(path) && !line.trim_start().starts_with("//"))?;
    TYPE_NAMES.iter().copied().find(|name| *name == declared)
}

fn is_code(path: &str) -> bool {
    path.ends_with(".rs") && path != "xtask/src/tidy/words.rs"
}

/// The first phrase of a text that a list forbids, and what to write instead.
fn forbidden(text: &str, lists: &[Phrases]) -> Option<(&'static str, &'static str)> {
    let lower = text.to_lowercase();
    lists
        .iter()
        .flat_map(|list| list.iter())
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
        assert!(read_by_users("examples/cni.yaml", "# a sight").is_some());
        assert_eq!(comment("docs/dev/interop.md", "a sight"), Some("a sight"));
        let api = "crates/clouds/kvm/types/src/v1beta1/machine.rs";
        assert_eq!(read_by_users(api, "    /// Look again"), Some("Look again"));
        assert!(read_by_users(api, "let sight = 1;").is_none());
        assert!(read_by_users("crates/view/src/lib.rs", "/// sight").is_none());
    }

    #[test]
    fn comments_of_code_are_read() {
        assert_eq!(comment("crates/view/src/lib.rs", "    //! A sight."), Some(" A sight."));
        assert_eq!(comment("crates/view/src/lib.rs", "    // A sight."), Some(" A sight."));
        assert!(comment("crates/view/src/lib.rs", "let sight = 1;").is_none());
        assert!(comment("crates/view/README.md", "// sight").is_none());
    }

    #[test]
    fn literals_of_the_product_are_read_up_to_its_tests() {
        let code = "f(\"a\");\n#[cfg(test)]\nmod tests {\nf(\"b\");\n}";
        assert_eq!(product_code("crates/view/src/lib.rs", code), "f(\"a\");\n");
        assert_eq!(product_code("capstan/src/main.rs", "f();"), "f();");
        for path in ["crates/view/tests/it/main.rs", "crates/view/src/tests.rs", "xtask/src/main.rs"] {
            assert_eq!(product_code(path, code), "");
        }
    }

    #[test]
    fn only_users_must_learn_who_acts() {
        assert!(forbidden("somebody removed it", &[PHRASES]).is_none());
        assert!(forbidden("somebody removed it", &[PHRASES, PHRASES_FOR_USERS]).is_some());
    }

    #[test]
    fn types_need_precise_names() {
        let name = |line| type_name("crates/view/src/lib.rs", line);
        assert_eq!(name("pub(crate) struct Verdict {"), Some("Verdict"));
        assert_eq!(name("type Place = (u8, u8);"), Some("Place"));
        assert_eq!(name("enum Shared<T> {"), Some("Shared"));
        assert_eq!(name("pub struct AdmissionVerdict {"), None);
        assert_eq!(name("// A struct Verdict is no more."), None);
        assert_eq!(name("let verdict: Verdict = x;"), None);
    }
}
