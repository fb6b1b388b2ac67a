//! Paths into a schema, of rules (`fieldPath`) and selectable fields: `.spec['a.b'].c`.

use crate::Schema;

/// A path that exists in a schema.
#[derive(Debug)]
pub struct FieldPath<'a> {
    /// The path as errors show it: `spec[a.b].c`.
    pub text: String,
    /// The first field.
    pub root: String,
    /// The schema at the path.
    pub schema: &'a Schema,
}

/// Resolves a path from a schema. The error names the part that does not exist.
pub fn resolve<'a>(path: &str, schema: &'a Schema, brackets: bool) -> Result<FieldPath<'a>, String> {
    let mut out = FieldPath { text: String::new(), root: String::new(), schema };
    let mut tokens = Tokens { rest: path };
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            "[" => {
                if !brackets {
                    return Err("array notation is not allowed".into());
                }
                let token = tokens.next().ok_or("unexpected end of JSON path")?;
                let quoted = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                unescape(quoted.ok_or_else(|| format!("expected single quoted string but got {token}"))?)?
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        out.step(&name)?;
        if token == "[" {
            let close = tokens.next().ok_or("unexpected end of JSON path")?;
            if close != "]" {
                return Err(format!("expected ] but got {close}"));
            }
        }
    }
    Ok(out)
}

impl FieldPath<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const NOWHERE: &str = "does not refer to a valid field";
        let dot = if self.text.is_empty() { "" } else { "." };
        if !self.schema.properties.is_empty() {
            self.text.push_str(&format!("{dot}{name}"));
            self.schema = self.schema.properties.get(name).ok_or(NOWHERE)?;
        } else {
            self.text.push_str(&format!("[{name}]"));
            self.schema = self.schema.additional_schema().ok_or(NOWHERE)?;
        }
        if self.root.is_empty() {
            self.root = name.to_owned();
        }
        Ok(())
    }
}

/// Splits at dots and brackets. A quoted text is one token.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.rest.as_bytes();
        let end = match bytes.first()? {
            b'\'' => {
                let close = (1..bytes.len()).find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\');
                close.map_or(bytes.len(), |i| i + 1)
            }
            b'.' | b'[' | b']' => 1,
            _ => bytes.iter().position(|b| matches!(b, b'.' | b'[' | b']')).unwrap_or(bytes.len()),
        };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            // A backslash at the end is not an escape.
            None => '\\',
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_followed_or_refused() {
        let schema = Schema::from_json(&json!({"properties": {
            "a": {"properties": {"b.c": {"type": "string"}, "m": {"additionalProperties": {"type": "integer"}}}},
        }}))
        .expect("valid");
        let text = |path: &str, brackets| resolve(path, &schema, brackets).map(|p| p.text);
        assert_eq!(text(".a['b.c']", true).as_deref(), Ok("a.b.c"));
        assert_eq!(text(".a.m.key", true).as_deref(), Ok("a.m[key]"));
        assert_eq!(
            text("['a']['m']['it\\'s']", true).as_deref(),
            Ok("[a][m][it's]".replace("[a][m]", "a.m").as_str())
        );
        for (path, brackets, error) in [
            (".x", true, "does not refer to a valid field"),
            ("a", true, "expected [ or . but got: a"),
            (".a['m']", false, "array notation is not allowed"),
            (".a[m]", true, "expected single quoted string but got m"),
            (".a[", true, "unexpected end of JSON path"),
            (".a['m'", true, "unexpected end of JSON path"),
            (".", true, "unexpected end of JSON path"),
            (".a['\\q']", true, "invalid string literal: invalid escape char \\q"),
        ] {
            assert_eq!(text(path, brackets), Err(error.to_owned()), "{path}");
        }
    }
}
