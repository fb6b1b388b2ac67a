//! A line of a machine's console, redacted for conditions.

/// Maximum length of a line.
const LONGEST: usize = 512;

/// Replacement for redacted words.
const HIDDEN: &str = "(hidden)";

/// A line without control characters, of limited length, and with redacted secrets. User data controls the output of
/// a machine, so it is not trusted.
pub fn shown(line: &str) -> String {
    let clean: String =
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(4 * LONGEST).collect();
    let words: Vec<&str> =
        clean.split_whitespace().map(|word| if looks_secret(word) { HIDDEN } else { word }).collect();
    let text = words.join(" ");
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

/// A bootstrap token, or a long word of digits and letters: keys, tokens, certificates.
fn looks_secret(word: &str) -> bool {
    let parts =
        word.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '/' | '=' | '_' | '-')));
    parts.into_iter().any(|part| is_token(part) || is_long_and_mixed(part))
}

fn is_token(part: &str) -> bool {
    let lower = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    // Also inside a word, such as `--token=…`.
    let tail = part.rsplit('=').next().unwrap_or(part);
    tail.split_once('.').is_some_and(|(id, secret)| lower(id, 6) && lower(secret, 16))
}

fn is_long_and_mixed(part: &str) -> bool {
    const LONG: usize = 40;
    part.split(['/', '.', '-', '_']).any(|piece| {
        piece.len() >= LONG
            && piece.bytes().any(|b| b.is_ascii_digit())
            && piece.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_like_secrets_are_redacted() {
        let key = "9a".repeat(32);
        for (line, expected) in [
            ("error execution phase preflight: no swap", "error execution phase preflight: no swap"),
            ("join --token abcdef.0123456789abcdef now", "join --token (hidden) now"),
            ("--token=abcdef.0123456789abcdef", "(hidden)"),
            (&format!("certificate-key {key}"), "certificate-key (hidden)"),
            ("a\u{1b}[31mb\tc", "a [31mb c"),
            (
                "/etc/kubernetes/manifests/kube-apiserver.yaml",
                "/etc/kubernetes/manifests/kube-apiserver.yaml",
            ),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
        assert!(shown(&"word ".repeat(1000)).chars().count() <= LONGEST + 1);
    }
}
