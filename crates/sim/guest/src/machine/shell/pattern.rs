//! Patterns of file names and of `case`: `*`, `?`, `[…]`, and `\` before what is meant as it is.

/// Whether a text fits a pattern as a whole.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on if what follows the last star does not fit: one more character for the star.
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

/// Where the pattern goes on if its next part fits a character.
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

/// A set of characters: where it ends, and whether a character is in it.
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

/// The shortest or longest beginning of a text that fits, as the length in bytes.
pub(super) fn prefix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    if longest {
        ends.reverse();
    }
    ends.into_iter().find(|end| fits(pattern, &text[..*end]))
}

/// Where the shortest or longest end of a text that fits begins.
pub(super) fn suffix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    if !longest {
        starts.reverse();
    }
    starts.into_iter().find(|start| fits(pattern, &text[*start..]))
}

/// Whether a text has characters that mean something in patterns.
pub(super) fn is_pattern(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|c| {
        let special = !escaped && matches!(c, '*' | '?' | '[');
        escaped = !escaped && c == '\\';
        special
    })
}

/// A text as a pattern that only it fits.
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
    fn patterns_fit_what_they_say() {
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
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        // Many stars cost no more than a product.
        assert!(!fits(&"a*".repeat(40), &"a".repeat(30)));
        assert_eq!(prefix("*/", "a/b/c", false), Some(2));
        assert_eq!(prefix("*/", "a/b/c", true), Some(4));
        assert_eq!(suffix("/*", "a/b/c", false), Some(3));
        assert_eq!(suffix("/*", "a/b/c", true), Some(1));
        assert!(fits(&escaped("[a]*?\\"), "[a]*?\\") && !is_pattern(&escaped("*")) && is_pattern("a*"));
    }
}
