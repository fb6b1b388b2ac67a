//! Go's formats of values (`%v`, `%#v`, `%T`) in upstream's messages.

use serde_json::{Number, Value};

use crate::golang::{self, quote};

/// A number as Go's decoder keeps it: integers if they fit, floats otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Num {
    /// `int64`
    Int(i64),
    /// `float64`
    Float(f64),
}

/// Converts a JSON number as Go would.
pub(crate) fn num(number: &Number) -> Num {
    number.as_i64().map_or_else(|| Num::Float(number.as_f64().unwrap_or(f64::MAX)), Num::Int)
}

/// `%v`
pub(crate) fn v(value: &Value) -> String {
    let mut out = String::new();
    write_v(&mut out, value);
    out
}

fn write_v(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_v(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_v(out, item);
            }
            out.push(']');
        }
    }
}

/// `%#v`
pub(crate) fn sharp_v(value: &Value) -> String {
    let mut out = String::new();
    write_sharp_v(&mut out, value);
    out
}

fn write_sharp_v(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => out.push_str(&quote(s)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_sharp_v(out, item);
            }
            out.push('}');
        }
        Value::Object(map) => {
            out.push_str("map[string]interface {}{");
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(key));
                out.push(':');
                write_sharp_v(out, item);
            }
            out.push('}');
        }
    }
}

/// `%T`
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) => match num(n) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The JSON type as Go's decoder names it in errors.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `%v` of a number.
pub(crate) fn number(n: &Number) -> String {
    match num(n) {
        Num::Int(i) => i.to_string(),
        Num::Float(f) => golang::float(f),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_render_as_go_renders_them() {
        let value = json!({"b": [1, 2.5, "x", null, true], "a": {"c": "d e"}});
        assert_eq!(v(&value), "map[a:map[c:d e] b:[1 2.5 x <nil> true]]");
        assert_eq!(
            sharp_v(&value),
            r#"map[string]interface {}{"a":map[string]interface {}{"c":"d e"}, "b":[]interface {}{1, 2.5, "x", interface {}(nil), true}}"#
        );
        assert_eq!(type_name(&json!([])), "[]interface {}");
    }
}
