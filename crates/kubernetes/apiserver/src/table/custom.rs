//! Tables of custom resources: `additionalPrinterColumns`.

use capstan_schema::jsonpath::{self, Path};
use jiff::Timestamp;
use serde_json::{Number, Value};

use super::column::{AGE, Header, NAME};
use super::human;
use crate::registry::Column;

#[derive(Debug)]
pub struct Columns {
    definitions: Vec<Value>,
    values: Vec<(String, Option<Path>)>,
}

impl Columns {
    /// Columns of a version. Without any, the age is shown.
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
        columns.push(super::column::integer("Desired", "desired number of replicas"), ".spec.replicas");
        columns.push(super::column::integer("Available", "available replicas"), ".status.replicas");
        columns.push(AGE.as_date(), ".metadata.creationTimestamp");
        columns
    }

    fn push(&mut self, header: Header, path: &str) {
        self.definitions.push(header.to_json());
        self.values.push((header.kind.to_owned(), Path::parse(path).ok()));
    }

    /// Column definitions, starting with the name.
    pub fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// Cells of one row. Absent values and wrong types are null.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or("").into();
        let values = self.values.iter().map(|(kind, path)| {
            let found = path.as_ref().map(|path| path.find(object)).unwrap_or_default();
            found.first().map_or(Value::Null, |value| cell(kind, value, now))
        });
        std::iter::once(name).chain(values).collect()
    }
}

/// Converts a value to the column's type.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", value) => jsonpath::print(value).into(),
        ("integer", Value::Number(number)) => integer(number).map_or(Value::Null, Value::from),
        ("number", Value::Number(number)) => whole(number),
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => date(text, now).into(),
        _ => Value::Null,
    }
}

/// A number as Go encodes a float64: without a fraction if it is integral.
fn whole(number: &Number) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within bounds")]
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => (float as i64).into(),
        _ => number.clone().into(),
    }
}

/// Integers unchanged, others truncated.
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
            ("string", json!({"b": [1], "a": "x"}), json!(r#"{"a":"x","b":[1]}"#)),
            ("string", json!(null), json!("<no value>")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.9), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("number", json!(3), json!(3)),
            ("number", json!(12345678.0), json!(12345678)),
            ("number", json!(2.5), json!(2.5)),
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
