//! YAML as Go's `sigs.k8s.io/yaml` writes it: block style, sorted keys, plain scalars wherever they stay strings.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::Value;

/// A document, with the newline that ends it.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        other => {
            inline(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

fn mapping(out: &mut String, map: &serde_json::Map<String, Value>, depth: usize) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_by(|a, b| natural(a, b));
    for (n, key) in keys.into_iter().enumerate() {
        // The first key of an item of a list stands behind its dash.
        if n > 0 || !out.ends_with("- ") {
            indent(out, depth);
        }
        out.push_str(&scalar(key, depth, true));
        out.push(':');
        below(out, &map[key], depth);
    }
}

fn sequence(out: &mut String, items: &[Value], depth: usize) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 || !out.ends_with("- ") {
            indent(out, depth);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, map, depth + 1),
            Value::Array(items) if !items.is_empty() => sequence(out, items, depth + 1),
            other => {
                inline(out, other, depth + 1);
                out.push('\n');
            }
        }
    }
}

/// The value of a key. Lists are not indented below their key.
fn below(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            mapping(out, map, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            sequence(out, items, depth);
        }
        other => {
            out.push(' ');
            inline(out, other, depth + 1);
            out.push('\n');
        }
    }
}

fn inline(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(_) | Value::Number(_) => write!(out, "{value}").unwrap_or_default(),
        Value::String(text) => out.push_str(&scalar(text, depth, false)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Go sorts digits by number, and everything else before letters.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.chars().peekable(), b.chars().peekable());
    let mut digits = false;
    loop {
        let (Some(x), Some(y)) = (left.peek().copied(), right.peek().copied()) else {
            return a.len().cmp(&b.len());
        };
        if x == y {
            digits = x.is_ascii_digit();
            left.next();
            right.next();
            continue;
        }
        if x.is_alphabetic() && y.is_alphabetic() {
            return x.cmp(&y);
        }
        if x.is_alphabetic() || y.is_alphabetic() {
            let letters_first = digits == (x.is_alphabetic());
            return if digits {
                if letters_first { Ordering::Less } else { Ordering::Greater }
            } else if y.is_alphabetic() {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
        let number = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let text: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).collect();
            let zeros = text.len() - text.trim_start_matches('0').len();
            (text.trim_start_matches('0').len(), text.trim_start_matches('0').to_owned(), zeros)
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, y) = (number(&mut left), number(&mut right));
            return (x.0, &x.1).cmp(&(y.0, &y.1)).then(x.2.cmp(&y.2)).then(a.cmp(b));
        }
        return x.cmp(&y);
    }
}

/// What a text allows in its written form.
#[derive(Default)]
struct Traits {
    /// Means something to YAML at this place.
    indicator: bool,
    /// Cannot be printed as it is.
    special: bool,
    breaks: bool,
    outer_space: bool,
    trailing_space: bool,
    break_space: bool,
    space_break: bool,
}

impl Traits {
    fn of(text: &str) -> Self {
        let mut found =
            Self { indicator: text.starts_with("---") || text.starts_with("..."), ..Self::default() };
        let characters: Vec<char> = text.chars().collect();
        let (mut before_is_space, mut before_is_break, mut preceded) = (false, false, true);
        for (n, character) in characters.iter().copied().enumerate() {
            let next = characters.get(n + 1).copied();
            let followed = next.is_none_or(|next| matches!(next, ' ' | '\t' | '\n' | '\r'));
            found.indicator |= match character {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if n == 0 =>
                {
                    true
                }
                '?' | '-' if n == 0 => followed,
                ':' => followed,
                '#' => preceded,
                _ => false,
            };
            let is_break = matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
            found.special |= !is_break && !printable(character);
            found.breaks |= is_break;
            if character == ' ' {
                found.outer_space |= n == 0 || next.is_none();
                found.trailing_space |= next.is_none();
                found.break_space |= before_is_break;
            } else if is_break {
                found.outer_space |= n == 0 || next.is_none();
                found.space_break |= before_is_space;
            }
            before_is_space = character == ' ';
            before_is_break = is_break;
            preceded = matches!(character, ' ' | '\t' | '\n' | '\r');
        }
        found
    }
}

fn printable(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && character != '\u{feff}'
}

fn scalar(text: &str, depth: usize, key: bool) -> String {
    let traits = Traits::of(text);
    let no_block = traits.trailing_space || traits.space_break || traits.special;
    if text.contains('\n') && !key && !no_block {
        return literal(text, depth);
    }
    if text.contains('\n') || is_another_type(text) {
        return double_quoted(text);
    }
    let plain = !(text.is_empty() || traits.outer_space || traits.breaks || traits.indicator);
    if plain && !traits.special && !traits.break_space && !traits.space_break {
        return text.to_owned();
    }
    if traits.break_space || traits.space_break || traits.special || (key && traits.breaks) {
        return double_quoted(text);
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn literal(text: &str, depth: usize) -> String {
    let mut out = "|".to_owned();
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(&mut out, depth);
            out.push_str(line);
        }
    }
    out
}

fn double_quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{a0}' => out.push_str("\\_"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            other if printable(other) => out.push(other),
            other if u32::from(other) < 0x100 => {
                write!(out, "\\x{:02X}", u32::from(other)).unwrap_or_default()
            }
            other if u32::from(other) < 0x1_0000 => {
                write!(out, "\\u{:04X}", u32::from(other)).unwrap_or_default();
            }
            other => write!(out, "\\U{:08X}", u32::from(other)).unwrap_or_default(),
        }
    }
    out.push('"');
    out
}

/// Whether a plain scalar would be read as something else than a string.
fn is_another_type(text: &str) -> bool {
    const WORDS: [&str; 12] =
        ["y", "n", "yes", "no", "on", "off", "true", "false", "null", ".nan", ".inf", "<<"];
    let lower = text.to_ascii_lowercase();
    let cased = text == lower
        || text == text.to_ascii_uppercase()
        || text.get(1..).is_some_and(|rest| rest == rest.to_ascii_lowercase());
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    text.is_empty()
        || text == "~"
        || (cased && (WORDS.contains(&lower.as_str()) || unsigned == ".inf"))
        || is_number(unsigned)
        || is_base_60(unsigned)
        || is_time(text)
}

fn is_number(unsigned: &str) -> bool {
    let digits = unsigned.replace('_', "");
    let all = |text: &str, fits: fn(&char) -> bool| !text.is_empty() && text.chars().all(|c| fits(&c));
    if let Some(rest) = digits.strip_prefix("0x") {
        return all(rest, char::is_ascii_hexdigit);
    }
    if let Some(rest) = digits.strip_prefix("0b") {
        return all(rest, |c| matches!(c, '0' | '1'));
    }
    if let Some(rest) = digits.strip_prefix("0o") {
        return all(rest, |c| matches!(c, '0'..='7'));
    }
    let begins = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    begins && digits.contains(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok()
}

/// Numbers like `1:30`, which YAML 1.1 reads to base 60.
fn is_base_60(unsigned: &str) -> bool {
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let rest: Vec<&str> = parts.collect();
    let (Some(last), true) = (rest.last(), digits(first) && !first.starts_with('_')) else { return false };
    let last = last.split('.').next().unwrap_or_default();
    let sixty = |text: &str| digits(text) && text.len() <= 2 && text.parse::<u8>().is_ok_and(|n| n < 60);
    rest[..rest.len() - 1].iter().all(|part| sixty(part)) && sixty(last)
}

/// Dates, with a time or without.
fn is_time(text: &str) -> bool {
    let date = text.as_bytes();
    let digits =
        |from: usize, to: usize| date.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    if !(digits(0, 4) && date.get(4) == Some(&b'-')) {
        return false;
    }
    let plain = digits(5, 7) && date.get(7) == Some(&b'-') && digits(8, 10);
    plain && (text.len() == 10 || text.parse::<jiff::Timestamp>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_look_as_upstream_writes_them() {
        let value = json!({
            "kind": "X", "a10": 1, "a2": [], "empty": {}, "list": [{"b": 1, "a": [1, [2]]}, "x", null],
            "f:data": {".": {}, "f:k": {}},
        });
        let expected = "a2: []\na10: 1\nempty: {}\nf:data:\n  .: {}\n  f:k: {}\nkind: X\nlist:\n- a:\n  - 1\n  \
                        - - 2\n  b: 1\n- x\n- null\n";
        assert_eq!(to_string(&value), expected);
        assert_eq!(to_string(&json!({})), "{}\n");
    }

    #[test]
    fn texts_stay_texts() {
        for (text, written) in [
            ("plain text", "plain text"),
            ("", "\"\""),
            ("true", "\"true\""),
            ("No", "\"No\""),
            ("nO", "nO"),
            ("12", "\"12\""),
            ("1e3", "\"1e3\""),
            ("1.2.3", "1.2.3"),
            ("0x1F", "\"0x1F\""),
            ("12:30", "\"12:30\""),
            ("2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""),
            ("a: b", "'a: b'"),
            ("a:", "'a:'"),
            ("a:b", "a:b"),
            ("a #b", "'a #b'"),
            ("a#b", "a#b"),
            ("- a", "'- a'"),
            ("-a", "-a"),
            ("*", "'*'"),
            ("it's", "it's"),
            ("'x", "'''x'"),
            ("\"q\"", "'\"q\"'"),
            (" x", "' x'"),
            ("{}", "'{}'"),
            ("a\tb", "\"a\\tb\""),
            ("a\nb\n", "|\n  a\n  b"),
            ("a\nb", "|-\n  a\n  b"),
            ("größe", "größe"),
        ] {
            assert_eq!(scalar(text, 1, false), written, "{text:?}");
        }
    }
}
