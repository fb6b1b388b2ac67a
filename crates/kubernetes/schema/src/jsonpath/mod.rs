//! JSON paths of printer columns, selectable fields and scale subresources, as in client-go's `jsonpath`:
//! `.spec.replicas`, `.items[0]`, `.status.conditions[?(@.type=="Ready")].status`.

mod eval;
mod parse;

use serde_json::Value;

use crate::golang;

/// A path that cannot be parsed, or that does not match the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(pub String);

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// `[start:end:step]`
    Slice(Slice),
    Filter(Filter),
    Wildcard,
    /// `..`
    Recursive,
    /// `[0,'a']`
    Union(Vec<Path>),
    /// A number, boolean or quoted string.
    Literal(Value),
    /// A word without a meaning.
    Identifier(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    /// `End::One` for a single entry.
    end: End,
    step: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// `[3]`: only that entry.
    One,
    /// `[3:5]`
    At(i64),
    /// `[3:]`
    Length,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Path,
    /// `None` for a filter that tests existence.
    comparison: Option<(String, Path)>,
}

impl Path {
    /// Parses a path without braces.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::parse(text, 0)
    }

    /// The values at the path; none if it does not match.
    pub fn find<'a>(&'a self, root: &'a Value) -> Vec<&'a Value> {
        self.try_find(root).unwrap_or_default()
    }

    /// The values at the path. Missing fields have no values, other mismatches are errors.
    pub fn try_find<'a>(&'a self, root: &'a Value) -> Result<Vec<&'a Value>, JsonPathError> {
        eval::walk(&self.steps, vec![root])
    }
}

/// A value as in a printer column of type `string`.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => golang::float(number.as_f64().unwrap_or_default()),
        other => golang::json(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "a", "labels": {"x.y/z": "label"}},
            "spec": {"replicas": 3, "ratio": 1.5, "list": [10, 20, 30], "null": null},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2},
            ]},
        })
    }

    #[test]
    fn paths_find_values() {
        for (path, expected) in [
            (".spec.replicas", json!([3])),
            (".spec.missing.deeper", json!([])),
            (".spec.null", json!([null])),
            (".spec.list[0]", json!([10])),
            (".spec.list[-1]", json!([30])),
            (".spec.list[1:]", json!([20, 30])),
            (".spec.list[0:3:2]", json!([10, 30])),
            (".spec.list[*]", json!([10, 20, 30])),
            (".spec.list[0,2]", json!([10, 30])),
            (".spec['replicas']", json!([3])),
            (".metadata.labels.x\\.y/z", json!(["label"])),
            (".metadata.labels['x\\.y/z']", json!(["label"])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type=='Other')].n", json!([2])),
            (".status.conditions[?(@.n>1)].type", json!(["Other"])),
            (".status.conditions[?(@.n<=1)].type", json!(["Ready"])),
            (".status.conditions[?(@.type!='Other')].type", json!(["Ready"])),
            (".status.conditions[?(@.missing)].type", json!([])),
            (".status.conditions[?(@.n)].type", json!(["Ready", "Other"])),
            (".status.conditions[*].type", json!(["Ready", "Other"])),
            ("..replicas", json!([3])),
            (".metadata.*", json!([{"x.y/z": "label"}, "a"])),
            ("$.spec.replicas", json!([3])),
            (".", json!([])),
        ] {
            let path = Path::parse(path).expect(path);
            let found: Vec<Value> = path.find(&object()).into_iter().cloned().collect();
            assert_eq!(Value::Array(found), expected, "{path:?}");
        }
    }

    #[test]
    fn misfits_are_errors() {
        for (path, error) in [
            (".spec.list[5]", "array index out of bounds: index 5, length 3"),
            (".spec[0]", "map[string]interface {} is not array or slice"),
            (".status.conditions[?(@.type==1)]", "incompatible types for comparison"),
            (".status.conditions[?(@.type=<'a')]", "unrecognized filter operator =<"),
            ("name", "unrecognized identifier name"),
        ] {
            let parsed = Path::parse(path).expect(path);
            assert_eq!(parsed.try_find(&object()), Err(JsonPathError(error.into())), "{path}");
            assert!(parsed.find(&object()).is_empty());
        }
    }

    #[test]
    fn syntax_errors_are_named() {
        for (path, error) in [
            (".a[", "unterminated array"),
            (".a[x]", "invalid array index x"),
            (".a[?(@.b", "unterminated filter"),
            (".a[?(@.b=='x'", "unterminated filter"),
            ("'abc", "unterminated quoted string"),
            (".a....b", "invalid multiple recursive descent"),
            ("#", "unrecognized character in action: U+0023 '#'"),
        ] {
            assert_eq!(Path::parse(path), Err(JsonPathError(error.into())), "{path}");
        }
        assert!(Path::parse(&"[?(".repeat(10_000)).is_err());
    }

    #[test]
    fn values_print_as_columns_show_them() {
        for (value, text) in [
            (json!("a"), "a"),
            (json!(1), "1"),
            (json!(1.5), "1.5"),
            (json!(true), "true"),
            (json!({"a": [1]}), r#"{"a":[1]}"#),
            (json!(null), "<no value>"),
        ] {
            assert_eq!(print(&value), text);
        }
    }
}
