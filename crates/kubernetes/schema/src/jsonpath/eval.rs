//! Evaluates a path on a value.

use std::cmp::Ordering;

use serde_json::Value;

use super::{End, Filter, JsonPathError, Slice, Step};
use crate::golang;

type Found<'a> = Result<Vec<&'a Value>, JsonPathError>;

fn error<T>(text: impl Into<String>) -> Result<T, JsonPathError> {
    Err(JsonPathError(text.into()))
}

pub fn walk<'a>(steps: &'a [Step], input: Vec<&'a Value>) -> Found<'a> {
    let mut current = input;
    for step in steps {
        current = match step {
            Step::Field(name) => current.iter().filter_map(|value| value.as_object()?.get(name)).collect(),
            Step::Slice(slice) => slice_of(*slice, &current)?,
            Step::Filter(filter) => filtered(filter, &current)?,
            Step::Wildcard => current.iter().flat_map(|value| children(value)).collect(),
            Step::Recursive => {
                let mut out = Vec::new();
                current.iter().for_each(|value| descend(value, &mut out));
                out
            }
            Step::Union(paths) => {
                let mut out = Vec::new();
                for path in paths {
                    out.extend(walk(&path.steps, current.clone())?);
                }
                out
            }
            Step::Literal(text @ Value::String(_)) => vec![text],
            Step::Literal(literal) => vec![literal; current.len()],
            Step::Identifier(name) => return error(format!("unrecognized identifier {name}")),
        };
    }
    Ok(current)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    let children = children(value);
    if !children.is_empty() {
        out.push(value);
        children.into_iter().for_each(|child| descend(child, out));
    }
}

fn slice_of<'a>(slice: Slice, input: &[&'a Value]) -> Found<'a> {
    let mut out = Vec::new();
    for value in input {
        let items = match value {
            Value::Null => continue,
            Value::Array(items) => items,
            other => return error(format!("{} is not array or slice", golang::type_name(other))),
        };
        let length = items.len() as i64;
        let from_end = |index: i64| if index < 0 { index + length } else { index };
        let start = from_end(slice.start.unwrap_or_default());
        let end = match slice.end {
            End::One => slice.start.unwrap_or_default() + 1,
            End::At(end) => from_end(end),
            End::Length => length,
        };
        // Index -1 is the last entry.
        let end = if slice.end == End::One && end <= 0 { end + length } else { end };
        if start == end {
            return Ok(out);
        }
        let out_of_bounds =
            |index: i64| error(format!("array index out of bounds: index {index}, length {length}"));
        if !(0..length).contains(&start) {
            return out_of_bounds(start);
        }
        if !(0..=length).contains(&end) {
            return out_of_bounds(end - 1);
        }
        if start > end {
            return error(format!("starting index {start} is greater than ending index {end}"));
        }
        let step = match slice.step {
            None => 1,
            Some(step) if step > 0 => step,
            Some(_) => return error("step must be > 0"),
        };
        out.extend(items[start as usize..end as usize].iter().step_by(step as usize));
    }
    Ok(out)
}

fn filtered<'a>(filter: &'a Filter, input: &[&'a Value]) -> Found<'a> {
    let mut out = Vec::new();
    for value in input {
        let Value::Array(items) = value else {
            return error(format!("{} is not array or slice and cannot be filtered", golang::display(value)));
        };
        for item in items {
            let left = walk(&filter.left.steps, vec![item]);
            let Some((operator, right)) = &filter.comparison else {
                if left.is_ok_and(|left| !left.is_empty()) {
                    out.push(item);
                }
                continue;
            };
            let left = left?;
            if left.is_empty() {
                continue;
            }
            let right = if left.len() == 1 { walk(&right.steps, vec![item])? } else { Vec::new() };
            match (left.as_slice(), right.as_slice()) {
                ([_], []) => {}
                ([left], [right]) => {
                    if compare(operator, left, right)? {
                        out.push(item);
                    }
                }
                _ => return error("can only compare one element at a time"),
            }
        }
    }
    Ok(out)
}

fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, JsonPathError> {
    let ordering = match (left, right) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => {
            return match operator {
                "==" => Ok(a == b),
                "!=" => Ok(a != b),
                "<" | ">" | "<=" | ">=" => error("invalid type for comparison"),
                other => error(format!("unrecognized filter operator {other}")),
            };
        }
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ if a.is_f64() == b.is_f64() => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
            _ => return error("incompatible types for comparison"),
        },
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return error("invalid type for comparison");
        }
        _ => return error("incompatible types for comparison"),
    };
    Ok(match operator {
        "==" => ordering.is_eq(),
        "!=" => ordering.is_ne(),
        "<" => ordering.is_lt(),
        ">" => ordering.is_gt(),
        "<=" => ordering.is_le(),
        ">=" => ordering.is_ge(),
        other => return error(format!("unrecognized filter operator {other}")),
    })
}
