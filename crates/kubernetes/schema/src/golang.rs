//! Formats values as Go does, for messages that clients may compare.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// `strconv.Quote`: what `%q` prints.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c if (c as u32) < 0x80 => _ = write!(out, "\\x{:02x}", c as u32),
            c if (c as u32) < 0x1_0000 => _ = write!(out, "\\u{:04x}", c as u32),
            c => _ = write!(out, "\\U{:08x}", c as u32),
        }
    }
    out.push('"');
    out
}

/// `strconv.IsPrint`, as far as Rust's `escape_debug` agrees with it: control and format characters, separators other
/// than the space, surrogates and unassigned code points are not printable.
pub fn is_print(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\u{0}'..='\u{a0}' | '\u{ad}' => false,
        // `escape_debug` also escapes grapheme extenders, which are printable in Go.
        _ => c.escape_debug().len() == 1 || is_grapheme_extend_printable(c),
    }
}

fn is_grapheme_extend_printable(c: char) -> bool {
    // In a string only a leading extender is escaped. After a letter the same character shows whether it is
    // printable.
    let mut buffer = String::from("a");
    buffer.push(c);
    buffer.escape_debug().count() == 2
}

/// `%v` of a float64: shortest digits, exponent from 1e6 on and below 1e-4.
pub fn float(value: f64) -> String {
    float_with(value, -4, 6)
}

fn float_with(value: f64, smallest_exponent: i32, first_exponent: i32) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    // `{:e}` prints the shortest digits that round-trip, as Go's 'g' with precision -1 does.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < smallest_exponent || exponent >= first_exponent {
        let sign = if exponent < 0 { '-' } else { '+' };
        let digits = exponent.unsigned_abs();
        // encoding/json drops the leading zero of e-07; `%v` keeps it.
        if smallest_exponent == -6 && exponent < 0 {
            format!("{mantissa}e{sign}{digits}")
        } else {
            format!("{mantissa}e{sign}{digits:02}")
        }
    } else {
        format!("{value}")
    }
}

/// A JSON number as encoding/json writes it.
fn number(value: &Number, out: &mut String) {
    match value.as_f64() {
        Some(float) if value.is_f64() => out.push_str(&float_with(float, -6, 21)),
        _ => _ = write!(out, "{value}"),
    }
}

/// encoding/json: sorted keys, no spaces, `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => _ = write!(out, "{flag}"),
        Value::Number(n) => number(n, out),
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_text(key, out);
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
    }
}

fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// A field error's value: strings quoted, floats as `%v`, the rest as JSON.
pub fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or_default()),
        other => json(other),
    }
}

/// `%v` of a decoded JSON value: strings unquoted, `map[a:1 b:2]`, `[1 2]`, `<nil>`.
pub fn display(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or_default()),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(display).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, v)| format!("{key}:{}", display(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%T` of a decoded JSON value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, quoted) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("tab\tnl\nbell\u{7}", r#""tab\tnl\nbell\a""#),
            ("é日本", "\"é日本\""),
            ("\u{0}\u{7f}\u{a0}\u{ad}\u{200b}", r#""\x00\x7f\u00a0\u00ad\u200b""#),
            ("e\u{301}'<>&", "\"e\u{301}'<>&\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, text) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (-0.1, "-0.1"),
            (123_456.0, "123456"),
            (1e6, "1e+06"),
            (1e21, "1e+21"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (123_456_789.25, "1.2345678925e+08"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(json(&json!([1e-5, 1e-7, 1.0, 1e21, 3])), "[0.00001,1e-7,1,1e+21,3]");
    }

    #[test]
    fn json_escapes_html() {
        assert_eq!(
            json(&json!({"b": "<a>&", "a": [true, null]})),
            r#"{"a":[true,null],"b":"\u003ca\u003e\u0026"}"#
        );
    }
}
