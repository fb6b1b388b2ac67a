//! Texts.

use super::{Limits, Outcome, Value, size, text_of, texts, whole};
use crate::print::{quoted, shown};

pub fn call(name: &str, values: &[Value], limits: &Limits) -> Option<Outcome> {
    match simple(name, values) {
        Some(changed) => Some(changed.map(Value::text)),
        None => other(name, values, limits),
    }
}

/// One text in, one text out.
fn simple(name: &str, values: &[Value]) -> Option<Result<String, String>> {
    let [Value::Text(text)] = values else { return None };
    Some(Ok(match name {
        "trim" => text.trim().to_owned(),
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "title" => initial_letters(text, true),
        "untitle" => initial_letters(text, false),
        "nospace" => text.split_whitespace().collect(),
        "initials" => text.split_whitespace().filter_map(|word| word.chars().next()).collect(),
        "swapcase" => text.chars().map(swapped).collect(),
        "snakecase" => words(text).join("_"),
        "kebabcase" => words(text).join("-"),
        "camelcase" => words(text).iter().map(|word| initial_letters(word, true)).collect(),
        "base" | "osBase" => base(text),
        "dir" | "osDir" => dir(text),
        "clean" | "osClean" => clean(text),
        "ext" | "osExt" => {
            let last = text.rsplit('/').next().unwrap_or_default();
            last.rfind('.').map_or(String::new(), |at| last[at..].to_owned())
        }
        "html" => escaped(text),
        "urlquery" => urlquery(text),
        "js" => text.replace('\\', "\\\\").replace('\'', "\\'").replace('"', "\\\"").replace('\n', "\\u000A"),
        _ => return None,
    }))
}

fn other(name: &str, values: &[Value], limits: &Limits) -> Option<Outcome> {
    let text = |text: String| Ok(Value::text(text));
    Some(match (name, values) {
        ("isAbs" | "osIsAbs", [Value::Text(path)]) => Ok(Value::Bool(path.starts_with('/'))),
        ("quote", values) => {
            let all = values.iter().filter(|value| !matches!(value, Value::Nil));
            let all: Result<Vec<String>, String> = all.map(|value| Ok(quoted(&shown(value)?))).collect();
            all.map(|all| Value::text(all.join(" ")))
        }
        ("squote", values) => {
            let all = values.iter().filter(|value| !matches!(value, Value::Nil));
            let all: Result<Vec<String>, String> =
                all.map(|value| Ok(format!("'{}'", shown(value)?))).collect();
            all.map(|all| Value::text(all.join(" ")))
        }
        ("cat", values) => {
            let all = values.iter().filter(|value| !matches!(value, Value::Nil));
            let all: Result<Vec<String>, String> = all.map(shown).collect();
            all.map(|all| Value::text(all.join(" ")))
        }
        (
            "trimAll" | "trimall" | "trimPrefix" | "trimSuffix" | "contains" | "hasPrefix" | "hasSuffix",
            [a, b],
        ) => two(name, a, b),
        ("replace", [old, new, of]) => texts(&[old.clone(), new.clone(), of.clone()])
            .and_then(|all| bounded(all[2].replace(&*all[0], &all[1]), limits)),
        ("repeat", [Value::Int(count), Value::Text(of)]) => {
            match of.len().checked_mul(size(*count)).filter(|length| *length <= limits.output) {
                Some(_) => text(of.repeat(size(*count))),
                None => Err(format!("the result is longer than {} bytes", limits.output)),
            }
        }
        ("substr", [Value::Int(start), Value::Int(end), Value::Text(of)]) => {
            let characters: Vec<char> = of.chars().collect();
            let end = if *end < 0 { characters.len() } else { size(*end).min(characters.len()) };
            let start = size(*start).min(end);
            text(characters[start..end].iter().collect())
        }
        ("trunc", [Value::Int(count), Value::Text(of)]) => {
            let characters: Vec<char> = of.chars().collect();
            let (count, length) = (*count, characters.len());
            match count < 0 {
                true => text(characters[length.saturating_sub(size(-count))..].iter().collect()),
                false => text(characters[..size(count).min(length)].iter().collect()),
            }
        }
        ("abbrev", [Value::Int(width), Value::Text(of)]) => {
            let length = of.chars().count();
            match size(*width) {
                width if width < 4 || length <= width => text(of.to_string()),
                width => text(of.chars().take(width - 3).chain("...".chars()).collect()),
            }
        }
        ("indent" | "nindent", [Value::Int(count), Value::Text(of)]) => {
            let lines = of.matches('\n').count() + 1;
            if lines.saturating_mul(size(*count)) > limits.output {
                return Some(Err(format!("the result is longer than {} bytes", limits.output)));
            }
            let pad = " ".repeat(size(*count));
            let indented = format!("{pad}{}", of.replace('\n', &format!("\n{pad}")));
            text(if name == "nindent" { format!("\n{indented}") } else { indented })
        }
        ("plural", [one, many, count]) => {
            whole(count).and_then(|count| text_of(if count == 1 { one } else { many })).map(Value::Text)
        }
        ("wrap", [Value::Int(width), Value::Text(of)]) => text(wrapped(of, size(*width), "\n")),
        ("wrapWith", [Value::Int(width), Value::Text(with), Value::Text(of)]) => {
            bounded(wrapped(of, size(*width), with), limits)
        }
        _ => return None,
    })
}

fn bounded(text: String, limits: &Limits) -> Outcome {
    match text.len() > limits.output {
        true => Err(format!("the result is longer than {} bytes", limits.output)),
        false => Ok(Value::text(text)),
    }
}

fn two(name: &str, a: &Value, b: &Value) -> Outcome {
    let (a, b) = (text_of(a)?, text_of(b)?);
    Ok(match name {
        "trimAll" | "trimall" => Value::text(b.trim_matches(|c| a.contains(c))),
        "trimPrefix" => Value::text(b.strip_prefix(&*a).unwrap_or(&b)),
        "trimSuffix" => Value::text(b.strip_suffix(&*a).unwrap_or(&b)),
        "contains" => Value::Bool(b.contains(&*a)),
        "hasPrefix" => Value::Bool(b.starts_with(&*a)),
        _ => Value::Bool(b.ends_with(&*a)),
    })
}

/// Changes the first letter of each word.
fn initial_letters(text: &str, upper: bool) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match (begins, upper) {
            (true, true) => out.extend(c.to_uppercase()),
            (true, false) => out.extend(c.to_lowercase()),
            _ => out.push(c),
        }
        begins = c.is_whitespace();
    }
    out
}

fn swapped(c: char) -> char {
    let other: Vec<char> =
        if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() };
    if let [only] = other[..] { only } else { c }
}

/// Lower-case words of a name in any case.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let characters: Vec<char> = text.chars().collect();
    for (at, c) in characters.iter().enumerate() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(at + 1);
        let begins = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some_and(char::is_uppercase) && after.is_some_and(|c| c.is_lowercase())));
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn base(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".".to_owned(),
        "" => "/".to_owned(),
        trimmed => trimmed.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |at| at + 1)])
}

fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, joined) => format!("/{joined}"),
        (false, joined) if joined.is_empty() => ".".to_owned(),
        (false, joined) => joined,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn urlquery(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let encoded = text.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

fn wrapped(text: &str, width: usize, with: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let letters = word.chars().count();
        if length > 0 {
            if length + 1 + letters > width {
                out.push_str(with);
                length = 0;
            } else {
                out.push(' ');
                length += 1;
            }
        }
        out.push_str(word);
        length += letters;
    }
    out
}
