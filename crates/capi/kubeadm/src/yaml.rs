//! Writes YAML that every parser reads the same way.
//!
//! The output passes through cloud-init's Jinja before it is parsed, so quoting matters: single quotes leave
//! `{{ ds.meta_data["hostname"] }}` unchanged, escapes in double quotes would not. Keys are sorted and lists are not
//! indented below their key, as Go programs write them, so that diffs stay small.

use serde_json::Value;

/// A whole document, with a newline at its end.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_fields(&mut out, fields, 0),
        Value::Array(items) if !items.is_empty() => write_items(&mut out, items, 0),
        other => {
            out.push_str(&inline(other));
            out.push('\n');
        }
    }
    out
}

fn write_fields(out: &mut String, fields: &serde_json::Map<String, Value>, indent: usize) {
    for (index, (key, value)) in fields.iter().enumerate() {
        // The first field continues the caller's line, after a dash or at the margin.
        if index > 0 {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&scalar(key));
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                out.push_str(&" ".repeat(indent + 2));
                write_fields(out, fields, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                write_items(out, items, indent);
            }
            other => {
                out.push(' ');
                out.push_str(&inline(other));
                out.push('\n');
            }
        }
    }
}

fn write_items(out: &mut String, items: &[Value], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => write_fields(out, fields, indent + 2),
            Value::Array(items) if !items.is_empty() => write_items(out, items, indent + 2),
            other => {
                out.push_str(&inline(other));
                out.push('\n');
            }
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// A string scalar: plain if possible, else in single quotes, else in double quotes.
pub fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().any(needs_escape) {
        double_quoted(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Whether a plain scalar is safe: no parser reads it as a number, date, boolean or null.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil"];
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let ends = !text.ends_with([':', ' ']);
    let inside = text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    let breaks = text.contains(": ") || text.contains(" #");
    starts && ends && inside && !breaks && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Text in double quotes, with escapes that YAML and JSON share.
pub fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a literal block preserves the text, except that trailing newlines become one.
pub fn fits_block(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '\n' || c == '\t' || !needs_escape(c))
}

/// The header of a literal block indented by `step` columns; a first line that starts with a space needs an
/// indentation indicator.
pub fn block_header(text: &str, step: usize) -> String {
    let first = text.split('\n').find(|line| !line.is_empty()).unwrap_or_default();
    if first.starts_with([' ', '\t']) || text.starts_with('\n') { format!("|{step}") } else { "|".to_owned() }
}

/// Indents every non-empty line.
pub fn indented(text: &str, columns: usize) -> String {
    let margin = " ".repeat(columns);
    let lines: Vec<String> = text
        .trim_end_matches('\n')
        .split('\n')
        .map(|line| if line.is_empty() { String::new() } else { format!("{margin}{line}") })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_read_back_as_the_same_text() {
        let awkward = [
            "",
            " ",
            "a",
            "yes",
            "No",
            "TRUE",
            "null",
            "~",
            "0640",
            "1.5",
            "1e3",
            "0x1F",
            "1:30",
            "2026-01-02",
            "-",
            "- a",
            "a: b",
            "a #b",
            "a:",
            "a ",
            "#a",
            "@a",
            "`a",
            "%a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "{a}",
            "[a]",
            "a,b",
            "'",
            "\"",
            "it's",
            "back\\slash",
            "line\nbreak",
            "tab\there",
            "\u{7f}",
            "\u{2028}",
            "ü",
            "🦀",
            "{{ ds.meta_data[\"hostname\"] }}",
            "=",
            "<<",
            ".5",
            ".inf",
            "10.96.0.0/12",
            "\r\n",
            "\u{0}",
        ];
        for text in awkward {
            let written = format!("value: {}\n", scalar(text));
            let read: Value = serde_saphyr::from_str(&written).expect(&written);
            assert_eq!(read, json!({"value": text}), "{written}");
        }
    }

    #[test]
    fn documents_are_read_back_as_they_were() {
        let value = json!({
            "b": {"c": [1, {"d": true, "e": [null, []]}, ["x", ["z"]]], "empty": {}},
            "a": [{"k": "v", "l": {"m": "o"}}, {}],
        });
        let written = document(&value);
        assert_eq!(serde_saphyr::from_str::<Value>(&written).expect(&written), value, "{written}");
        insta::assert_snapshot!(written, @r"
        a:
        - k: v
          l:
            m: o
        - {}
        b:
          c:
          - 1
          - d: true
            e:
            - null
            - []
          - - x
            - - z
          empty: {}
        ");
    }

    #[test]
    fn blocks_keep_their_lines() {
        for text in ["a\n  b\n\nc", "  indented first\nb", "\nempty first", "tab\there"] {
            let written = format!("- key: {}\n{}\n", block_header(text, 2), indented(text, 4));
            let read: Value = serde_saphyr::from_str(&written).expect(&written);
            assert_eq!(read[0]["key"], format!("{text}\n"), "{written}");
        }
    }
}
