//! Tables of custom resources: `additionalPrinterColumns`.

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::column::{AGE, Header, NAME};
use super::human;
use crate::registry::Column;

/// Compiled columns.
#[derive(Debug)]
pub struct Columns {
    definitions: Vec<Value>,
    values: Vec<(String, Option<Path>)>,
}

impl Columns {
    /// Columns of a version; one that declares none shows its age.
    pub fn new(columns: &[Column]) -> Self {
        let mut compiled = Self { definitions: vec![NAME.to_json()], values: Vec::new() };
        for column in columns {
            let description = match column.description.as_str() {
                "" => format!("value at {}", column.json_path),
                given => given.to_owned(),
            };
            let header = Header {
                name: &column.name,
                kind: &column.kind,
                format: &column.format,
                description: &description,
                priority: column.priority,
            };
            compiled.push(header, &column.json_path);
        }
        if columns.is_empty() {
            compiled.push(AGE.as_date(), ".metadata.creationTimestamp");
        }
        compiled
    }

    /// Columns of the `scale` subresource.
    pub fn scale() -> Self {
        let mut columns = Self { definitions: vec![NAME.to_json()], values: Vec::new() };
        columns.push(super::column::integer("Desired", "replicas wanted"), ".spec.replicas");
        columns.push(super::column::integer("Available", "replicas there are"), ".status.replicas");
        columns.push(AGE.as_date(), ".metadata.creationTimestamp");
        columns
    }

    fn push(&mut self, header: Header, path: &str) {
        self.definitions.push(header.to_json());
        self.values.push((header.kind.to_owned(), Path::parse(path)));
    }

    /// Column definitions, the name first.
    pub fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// Cells of one row. What is not there, or has the wrong type, is null.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or("").into();
        let values = self.values.iter().map(|(kind, path)| {
            let value = path.as_ref().and_then(|path| path.first(object));
            value.map_or(Value::Null, |value| cell(kind, value, now))
        });
        std::iter::once(name).chain(values).collect()
    }
}

/// A value as a cell of a column's type.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", value) => printed(value).into(),
        ("integer", Value::Number(number)) => integer(number).map_or(Value::Null, Value::from),
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => date(text, now).into(),
        _ => Value::Null,
    }
}

/// Whole numbers as they are, others cut off.
fn integer(number: &Number) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "upstream cuts off, too")]
    number.as_i64().or_else(|| number.as_f64().map(|float| float as i64))
}

fn date(text: &str, now: Timestamp) -> String {
    if text.is_empty() || text == "null" {
        return "<unknown>".into();
    }
    text.parse().map_or_else(|_| "<invalid>".into(), |then| human::between(then, now))
}

/// A value as JSONPath prints it: texts bare, lists and objects as JSON, numbers as Go does.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, go_float),
        other => other.to_string(),
    }
}

/// `fmt.Sprint` of a float64: the exponent form from a million on, and below 0.0001.
fn go_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{float}"),
    }
}

/// Finds what a column shows.
#[derive(Debug)]
struct Path(Vec<String>);

impl Path {
    fn parse(path: &str) -> Option<Self> {
        let keys = path.strip_prefix('.')?.split('.').map(str::to_owned);
        Some(Self(keys.collect()))
    }

    fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, key| value.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_have_the_type_their_column_declares() {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let cases = [
            ("string", json!("x"), json!("x")),
            ("string", json!(3), json!("3")),
            ("string", json!(true), json!("true")),
            ("string", json!(0.5), json!("0.5")),
            ("string", json!(12345678.5), json!("1.23456785e+07")),
            ("string", json!({"b": [1], "a": "x"}), json!(r#"{"a":"x","b":[1]}"#)),
            ("string", json!(null), json!("<no value>")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.9), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("number", json!(3), json!(3.0)),
            ("boolean", json!(false), json!(false)),
            ("boolean", json!("false"), json!(null)),
            ("date", json!("2026-01-01T00:57:00Z"), json!("3m")),
            ("date", json!("yesterday"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!(5), json!(null)),
        ];
        for (kind, value, expected) in cases {
            assert_eq!(cell(kind, &value, now), expected, "{kind} {value}");
        }
    }
}
