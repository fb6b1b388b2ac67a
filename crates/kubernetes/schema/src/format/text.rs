//! Formats of plain strings.

use crate::meta;

pub fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub fn is_base64(text: &str) -> bool {
    // Upstream's expression rejects the empty string: its last group is not optional.
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let padding = bytes.iter().rev().take_while(|&&b| b == b'=').count();
    let body = &bytes[..bytes.len() - padding];
    padding <= 2 && body.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

pub fn is_credit_card(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let prefix = |length: usize| number.get(..length).and_then(|p| p.parse::<u32>().ok()).unwrap_or(0);
    let known = match number.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(3), 300..=305 | 360..=369 | 380..=389),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => prefix(1) == 4 || matches!(prefix(2), 51..=55 | 35 | 65) || prefix(4) == 6011,
        _ => false,
    };
    let luhn = digits(&number).iter().rev().enumerate().fold(0, |sum, (index, digit)| {
        let digit = if index % 2 == 1 { digit * 2 } else { *digit };
        sum + if digit > 9 { digit - 9 } else { digit }
    });
    known && luhn % 10 == 0
}

pub fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && meta::parse_rfc3339(&format!("{text}T00:00:00Z")).is_ok()
}

pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

/// `23:59:59`, then any character and digits, then `z` or an offset.
fn is_time(text: &str) -> bool {
    let two = |from: usize| {
        text.get(from..from + 2).filter(|d| d.bytes().all(|b| b.is_ascii_digit())).unwrap_or("99")
    };
    let colon = |at: usize| text.as_bytes().get(at) == Some(&b':');
    if !(two(0) <= "23" && colon(2) && two(3) <= "59" && colon(5) && two(6) <= "59") {
        return false;
    }
    let rest = text.get(8..).unwrap_or_default();
    let is_zone = |zone: &str| {
        zone == "z" || {
            let b = zone.as_bytes();
            b.len() == 6
                && matches!(b[0], b'+' | b'-')
                && b[3] == b':'
                && [1, 2, 4, 5].iter().all(|&i| b[i].is_ascii_digit())
        }
    };
    if is_zone(rest) {
        return true;
    }
    let mut chars = rest.chars();
    let separator = chars.next();
    let fraction = chars.as_str();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    // The digits are greedy and never need to backtrack: a zone does not start with a digit.
    separator.is_some_and(|c| c != '\n') && digits > 0 && is_zone(&fraction[digits..])
}

pub fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_scala_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return true;
    }
    if unsigned.is_empty() {
        return false;
    }
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("μs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    let (mut rest, mut total) = (unsigned, 0.0);
    while !rest.is_empty() {
        let number = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (value, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, next) = after.split_at(unit);
        let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
        let scale = UNITS.iter().find(|(unit, _)| *unit == name);
        let value = format!("0{whole}.{fraction}0").parse::<f64>();
        let (Some((_, scale)), Ok(value), false) = (scale, value, whole.len() + fraction.len() == 0) else {
            return false;
        };
        total += scale * value;
        rest = next;
    }
    total <= 9_223_372_036_854_775_807.0
}

/// `5 seconds`: any text that contains a number followed by a known unit.
fn is_scala_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let letters = after.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        rest = next;
        if unit.is_empty() {
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |= UNITS.iter().any(|variants| {
            variants.contains(&unit.as_str()) || variants.last().is_some_and(|last| unit.starts_with(last))
        });
    }
    found
}

pub fn is_hex_color(text: &str) -> bool {
    let text = text.strip_prefix('#').unwrap_or(text);
    matches!(text.len(), 3 | 6) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')')) else { return false };
    let parts: Vec<&str> =
        inner.split(',').map(|p| p.trim_matches(['\t', '\n', '\u{c}', '\r', ' '])).collect();
    let is_byte = |part: &&str| {
        part.parse::<u8>().is_ok() && (*part == "0" || part.starts_with(|c: char| ('1'..='9').contains(&c)))
    };
    parts.len() == 3 && parts.iter().all(is_byte)
}

pub fn is_ssn(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() == 11
        && matches!(b[3], b'-' | b' ')
        && matches!(b[6], b'-' | b' ')
        && [0, 1, 2, 4, 5, 7, 8, 9, 10].iter().all(|&i| b[i].is_ascii_digit())
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ' | '-')).collect()
}

pub fn is_isbn(text: &str) -> bool {
    is_isbn10(text) || is_isbn13(text)
}

pub fn is_isbn10(text: &str) -> bool {
    let text = without_separators(text);
    let value = |(index, c): (usize, char)| match c {
        'X' if index == 9 => Some(10),
        _ => c.to_digit(10),
    };
    let values: Option<Vec<u32>> = text.chars().enumerate().map(value).collect();
    match values {
        Some(values) if values.len() == 10 => {
            (1..).zip(&values).map(|(weight, value)| weight * value).sum::<u32>() % 11 == 0
        }
        _ => false,
    }
}

pub fn is_isbn13(text: &str) -> bool {
    let text = without_separators(text);
    let values = digits(&text);
    text.len() == 13
        && values.len() == 13
        && values.iter().zip([1, 3].iter().cycle()).map(|(value, weight)| value * weight).sum::<u32>() % 10
            == 0
}

pub fn is_uuid(text: &str, version: Option<char>) -> bool {
    // Dashes are optional, each on its own.
    let mut hex = String::with_capacity(32);
    for c in text.chars() {
        match c {
            '-' if matches!(hex.len(), 8 | 12 | 16 | 20) => {}
            c if c.is_ascii_hexdigit() => hex.push(c.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let at = |index: usize| hex.as_bytes().get(index).copied().map(char::from);
    hex.len() == 32
        && !text.contains("--")
        && match version {
            None => true,
            Some('3') => at(12) == Some('3'),
            Some(version) => at(12) == Some(version) && matches!(at(16), Some('8' | '9' | 'a' | 'b')),
        }
}

pub fn is_short_name(text: &str) -> bool {
    meta::dns1123_label(text).is_empty()
}

pub fn is_long_name(text: &str) -> bool {
    meta::dns1123_subdomain(text).is_empty()
}
