//! String literals of Rust code. Knows just enough of the language to skip comments, characters and lifetimes.

/// The text of string literals by line. Escapes stay as they are written.
pub fn literals(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // The literal that is open at the start of a line.
    let mut open: Option<End> = None;
    for (number, line) in (1..).zip(code.lines()) {
        let mut rest = line;
        loop {
            open = match open {
                Some(end) => match end.find(rest) {
                    Some((text, after)) => {
                        found.push((number, text));
                        rest = after;
                        None
                    }
                    None => {
                        found.push((number, rest));
                        break;
                    }
                },
                None => match start(rest) {
                    Some((end, after)) => {
                        rest = after;
                        Some(end)
                    }
                    None => break,
                },
            };
        }
    }
    found
}

/// What ends a literal: a quote without a backslash, or a quote and as many hashes as the literal began with.
#[derive(Debug, Clone, Copy)]
enum End {
    Quote,
    Raw { hashes: usize },
}

impl End {
    /// The text before the end, and what follows the end.
    fn find(self, line: &str) -> Option<(&str, &str)> {
        match self {
            Self::Raw { hashes } => line.split_once(&format!("\"{}", "#".repeat(hashes))),
            Self::Quote => {
                let mut escaped = false;
                let at = line.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                })?;
                Some((&line[..at], &line[at + 1..]))
            }
        }
    }
}

/// The end of the next literal of a line of code, and what follows its opening quote.
fn start(line: &str) -> Option<(End, &str)> {
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let rest = &line[at + c.len_utf8()..];
        match c {
            '/' if rest.starts_with('/') => return None,
            '\'' => at += character(rest),
            '"' => {
                let before = line[..at].trim_end_matches('#');
                let hashes = at - before.len();
                let end = if before.ends_with('r') { End::Raw { hashes } } else { End::Quote };
                return Some((end, rest));
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

/// The length of a character literal after its opening quote; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let escape = usize::from(rest.starts_with('\\'));
    let Some(c) = rest[escape..].chars().next() else { return 0 };
    let closing = rest[escape + c.len_utf8()..].find('\'');
    match (escape, closing) {
        (0, Some(0)) => c.len_utf8() + 1,
        (1, Some(more)) => 1 + c.len_utf8() + more + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_by_line() {
        for (code, expected) in [
            ("let a = \"b c\"; // \"d\"", vec![(1, "b c")]),
            (r#"f("a \"b\" c", 'd', '"', '\'', "e")"#, vec![(1, r#"a \"b\" c"#), (1, "e")]),
            ("fn f<'a>(a: &'a str) -> &'a str { \"b\" }", vec![(1, "b")]),
            ("x(r#\"a \"b\" \\\"#, r\"c\\\")", vec![(1, "a \"b\" \\"), (1, "c\\")]),
            ("f(\"a \\\n   b\", 1)\n\"c\"", vec![(1, "a \\"), (2, "   b"), (3, "c")]),
        ] {
            assert_eq!(literals(code), expected, "{code}");
        }
    }
}
