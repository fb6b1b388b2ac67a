//! Patterns of file names and `case`: `*`, `?`, `[…]`, and `\` as escape.

/// Whether a pattern matches the whole text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to resume after a mismatch: the last star matches one more character.
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            back = Some((p, t));
            p += 1;
            continue;
        }
        if let Some(next) = one(&pattern, p, text[t]) {
            p = next;
            t += 1;
            continue;
        }
        let Some((star, from)) = back else { return false };
        back = Some((star, from + 1));
        p = star + 1;
        t = from + 1;
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The next position in the pattern if its element matches a character.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' if at + 1 < pattern.len() => (pattern[at + 1] == c).then_some(at + 2),
        '[' => match set(pattern, at) {
            Some((end, found)) => found(c).then_some(end),
            None => (c == '[').then_some(at + 1),
        },
        held => (held == c).then_some(at + 1),
    }
}

/// A character set: its end, and whether it contains a character.
fn set(pattern: &[char], at: usize) -> Option<(usize, impl Fn(char) -> bool)> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let start = at + 1 + usize::from(negated);
    let end = (start + 1..pattern.len()).find(|end| pattern[*end] == ']')?;
    let members = &pattern[start..end];
    Some((end + 1, move |c: char| {
        let mut found = false;
        let mut n = 0;
        while n < members.len() {
            if n + 2 < members.len() && members[n + 1] == '-' {
                found |= (members[n]..=members[n + 2]).contains(&c);
                n += 3;
            } else {
                found |= members[n] == c;
                n += 1;
            }
        }
        found != negated
    }))
}

/// Length in bytes of the shortest or longest matching prefix.
pub(super) fn prefix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    if longest {
        ends.reverse();
    }
    ends.into_iter().find(|end| matches(pattern, &text[..*end]))
}

/// Start of the shortest or longest matching suffix.
pub(super) fn suffix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    if !longest {
        starts.reverse();
    }
    starts.into_iter().find(|start| matches(pattern, &text[*start..]))
}

/// Whether a text has special characters of patterns.
pub(super) fn is_pattern(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|c| {
        let special = !escaped && matches!(c, '*' | '?' | '[');
        escaped = !escaped && c == '\\';
        special
    })
}

/// Escapes a text so that the pattern matches only it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*.yaml", "kube-vip.yaml", true),
            ("*.yaml", "kube-vip.yml", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[", "[", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        // Many stars take polynomial time.
        assert!(!matches(&"a*".repeat(40), &"a".repeat(30)));
        assert_eq!(prefix("*/", "a/b/c", false), Some(2));
        assert_eq!(prefix("*/", "a/b/c", true), Some(4));
        assert_eq!(suffix("/*", "a/b/c", false), Some(3));
        assert_eq!(suffix("/*", "a/b/c", true), Some(1));
        assert!(matches(&escaped("[a]*?\\"), "[a]*?\\") && !is_pattern(&escaped("*")) && is_pattern("a*"));
    }
}
