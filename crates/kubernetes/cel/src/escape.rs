//! Property names as CEL identifiers.

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether `word` is reserved by CEL's grammar.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The CEL identifier of a property name, or `None` if the property cannot be reached from CEL.
///
/// `__`, `.`, `-` and `/` become `__underscores__`, `__dot__`, `__dash__` and `__slash__`; a reserved word becomes
/// `__word__`.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => out.push(c),
            _ => return None,
        }
        rest = &rest[c.len_utf8()..];
    }
    Some(out)
}

/// The property name of a CEL identifier, or `None` if it has an unknown escape.
#[must_use]
pub fn unescape(identifier: &str) -> Option<String> {
    if !identifier.contains("__") {
        return Some(identifier.to_owned());
    }
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        // The shortest `__word__` with a non-empty word free of underscores, searched from the left.
        let word_start = start + 2;
        let word_len = rest[word_start..].find('_').unwrap_or(0);
        if word_len == 0 || !rest[word_start + word_len..].starts_with("__") {
            let next = start + 1;
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        out.push_str(&rest[..start]);
        let word = &rest[word_start..word_start + word_len];
        match word {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            _ if is_reserved(word) && word.len() + 4 == identifier.len() => out.push_str(word),
            _ => return None,
        }
        rest = &rest[word_start + word_len + 2..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_escape_and_unescape_as_kubernetes_does() {
        let table = [
            ("a", Some("a")),
            ("a.a", Some("a__dot__a")),
            ("a-a", Some("a__dash__a")),
            ("a__a", Some("a__underscores__a")),
            ("a/a", Some("a__slash__a")),
            ("a_a", Some("a_a")),
            ("namespace", Some("__namespace__")),
            ("a.-/__a", Some("a__dot____dash____slash____underscores__a")),
            ("int", Some("int")),
            ("1a", None),
            ("", None),
            ("a@b", None),
            ("ü", None),
            ("___", Some("__underscores___")),
        ];
        for (name, escaped) in table {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
            }
        }
    }

    #[test]
    fn unknown_escapes_are_refused() {
        for bad in ["a__illegal__a", "a__namespace__"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
        assert_eq!(unescape("__a").as_deref(), Some("__a"));
        assert_eq!(unescape("a__").as_deref(), Some("a__"));
    }
}
