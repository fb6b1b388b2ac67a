//! How Go prints values: `%v` and the other verbs of `printf`.

use std::fmt::Write as _;

use crate::value::{DEEPEST, Value};

/// What an action prints.
pub fn printed(value: &Value) -> Result<String, String> {
    match value {
        Value::Nil => Ok("<no value>".to_owned()),
        value => shown(value),
    }
}

/// `%v`.
pub fn shown(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    show(value, &mut out, DEEPEST)?;
    Ok(out)
}

fn show(value: &Value, out: &mut String, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("a value is nested too deeply to be printed")?;
    if out.len() > 1 << 20 {
        return Err("a printed value is longer than 1048576 bytes".to_owned());
    }
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => out.push_str(text),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                show(item, out, depth)?;
            }
            out.push(']');
        }
        Value::Map(fields) => {
            out.push_str("map[");
            for (at, (key, value)) in fields.borrow().iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                show(value, out, depth)?;
            }
            out.push(']');
        }
    }
    Ok(())
}

/// `%v` of a float64: the shortest digits, with an exponent below -4 and from 6 on.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Go's `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c if c.is_control() && u32::from(c) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Widest padding of `printf`.
const WIDEST: usize = 10_000;

#[derive(Default)]
struct Verb {
    minus: bool,
    plus: bool,
    zero: bool,
    sharp: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

pub fn printf(format: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut values_left = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut verb = Verb::default();
        while let Some(flag) = chars.peek() {
            match flag {
                '-' => verb.minus = true,
                '+' => verb.plus = true,
                '0' => verb.zero = true,
                '#' => verb.sharp = true,
                ' ' => verb.space = true,
                _ => break,
            }
            chars.next();
        }
        verb.width = number(&mut chars);
        if chars.peek() == Some(&'.') {
            chars.next();
            verb.precision = Some(number(&mut chars).unwrap_or(0));
        }
        let widest = verb.width.max(verb.precision).unwrap_or(0);
        if widest > WIDEST {
            return Err(format!("a width of {widest} is more than {WIDEST}"));
        }
        match chars.next() {
            None => out.push_str("%!(NOVERB)"),
            Some('%') => out.push('%'),
            Some(letter) => match values_left.next() {
                Some(value) => out.push_str(&formatted(letter, &verb, value)?),
                None => {
                    let _ = write!(out, "%!{letter}(MISSING)");
                }
            },
        }
    }
    let extra: Vec<String> = values_left
        .map(|value| Ok(format!("{}={}", go_type(value), shown(value)?)))
        .collect::<Result<_, String>>()?;
    if !extra.is_empty() {
        let _ = write!(out, "%!(EXTRA {})", extra.join(", "));
    }
    Ok(out)
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        let before: usize = number.unwrap_or(0);
        number = Some(before.saturating_mul(10).saturating_add(usize::try_from(digit).unwrap_or(0)));
        chars.next();
    }
    number
}

/// Name of a type, as `typeOf` has it.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float64",
        Value::Text(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
    }
}

fn formatted(letter: char, verb: &Verb, value: &Value) -> Result<String, String> {
    let signed = |text: String, negative: bool| match (negative, verb.plus, verb.space) {
        (false, true, _) => format!("+{text}"),
        (false, false, true) => format!(" {text}"),
        _ => text,
    };
    let text = match (letter, value) {
        ('v', Value::Nil) => "<nil>".to_owned(),
        ('v', Value::Text(text)) if verb.sharp => quoted(text),
        ('v' | 's', Value::Text(text)) => match verb.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text.to_string(),
        },
        ('v', value) => shown(value)?,
        ('s', value @ (Value::List(_) | Value::Map(_))) => shown(value)?,
        ('q', Value::Text(text)) => quoted(text),
        ('t', Value::Bool(value)) => value.to_string(),
        ('d', Value::Int(number)) => signed(number.to_string(), *number < 0),
        ('b', Value::Int(number)) => format!("{number:b}"),
        ('o', Value::Int(number)) => format!("{number:o}"),
        ('x', Value::Int(number)) => format!("{}{number:x}", if verb.sharp { "0x" } else { "" }),
        ('X', Value::Int(number)) => format!("{}{number:X}", if verb.sharp { "0X" } else { "" }),
        ('x', Value::Text(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Value::Text(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ('c', Value::Int(number)) => {
            u32::try_from(*number).ok().and_then(char::from_u32).unwrap_or('\u{fffd}').to_string()
        }
        ('f' | 'F', Value::Float(number)) => {
            signed(format!("{number:.*}", verb.precision.unwrap_or(6)), number.is_sign_negative())
        }
        ('g' | 'G', Value::Float(number)) => signed(float(*number), number.is_sign_negative()),
        ('e', Value::Float(number)) => {
            let text = format!("{number:.*e}", verb.precision.unwrap_or(6));
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        ('T', value) => go_type(value).to_owned(),
        (letter, Value::Nil) => format!("%!{letter}(<nil>)"),
        (letter, value) => format!("%!{letter}({}={})", go_type(value), shown(value)?),
    };
    let length = text.chars().count();
    let Some(missing) = verb.width.and_then(|width| width.checked_sub(length)).filter(|n| *n > 0) else {
        return Ok(text);
    };
    let numeric = matches!(value, Value::Int(_) | Value::Float(_));
    Ok(match (verb.minus, verb.zero && numeric) {
        (true, _) => text + &" ".repeat(missing),
        (false, true) => match text.strip_prefix(['-', '+']) {
            Some(digits) => format!("{}{}{digits}", &text[..1], "0".repeat(missing)),
            None => "0".repeat(missing) + &text,
        },
        (false, false) => " ".repeat(missing) + &text,
    })
}
