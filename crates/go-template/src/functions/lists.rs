//! Lists.

use super::{Limits, Outcome, Value, int, size, text_of, whole};
use crate::print::shown;

pub fn call(name: &str, values: &[Value], limits: &Limits) -> Option<Outcome> {
    let list = |items: Vec<Value>| Ok(Value::list(items));
    Some(match (name, values) {
        ("list" | "tuple", values) => list(values.to_vec()),
        ("len", [Value::Text(text)]) => Ok(int(text.len())),
        ("len", [Value::List(items)]) => Ok(int(items.len())),
        ("len", [Value::Map(fields)]) => Ok(int(fields.borrow().len())),
        ("index", [of, keys @ ..]) => keys.iter().try_fold(of.clone(), |value, key| element(&value, key)),
        ("first", [Value::List(items)]) => Ok(items.first().cloned().unwrap_or(Value::Nil)),
        ("last", [Value::List(items)]) => Ok(items.last().cloned().unwrap_or(Value::Nil)),
        ("rest", [Value::List(items)]) => list(items.iter().skip(1).cloned().collect()),
        ("initial", [Value::List(items)]) => list(items[..items.len().saturating_sub(1)].to_vec()),
        ("append", [Value::List(items), value]) => list([&items[..], std::slice::from_ref(value)].concat()),
        ("prepend", [Value::List(items), value]) => list([std::slice::from_ref(value), &items[..]].concat()),
        ("concat", lists) => concat(lists),
        ("reverse", [Value::List(items)]) => list(items.iter().rev().cloned().collect()),
        ("compact", [Value::List(items)]) => {
            list(items.iter().filter(|item| item.holds()).cloned().collect())
        }
        ("uniq", [Value::List(items)]) => {
            let mut kept: Vec<Value> = Vec::new();
            for item in items.iter() {
                if !kept.iter().any(|known| known.same(item)) {
                    kept.push(item.clone());
                }
            }
            list(kept)
        }
        ("without", [Value::List(items), unwanted @ ..]) => {
            let kept = items.iter().filter(|item| !unwanted.iter().any(|other| other.same(item)));
            list(kept.cloned().collect())
        }
        ("has", [value, Value::List(items)]) => Ok(Value::Bool(items.iter().any(|item| item.same(value)))),
        ("has", [_, Value::Nil]) => Ok(Value::Bool(false)),
        ("slice", [of, bounds @ ..]) => slice(of, bounds),
        ("chunk", [Value::Int(count), Value::List(items)]) if *count > 0 => {
            list(items.chunks(size(*count)).map(|part| Value::list(part.to_vec())).collect())
        }
        ("join", [Value::Text(separator), of]) => join(separator, of, limits),
        ("sortAlpha", [Value::List(items)]) => {
            let texts: Result<Vec<String>, String> = items.iter().map(shown).collect();
            texts.map(|mut texts| {
                texts.sort();
                Value::list(texts.into_iter().map(Value::text).collect())
            })
        }
        ("splitList", [Value::Text(separator), Value::Text(text)]) => list(parts(text, separator, None)),
        ("split", [Value::Text(separator), Value::Text(text)]) => numbered(parts(text, separator, None)),
        ("splitn", [Value::Text(separator), Value::Int(count), Value::Text(text)]) => {
            numbered(parts(text, separator, Some(size(*count))))
        }
        ("until", [Value::Int(count)]) => counted(0, *count, if *count < 0 { -1 } else { 1 }, limits),
        ("untilStep", [Value::Int(start), Value::Int(stop), Value::Int(step)]) => {
            counted(*start, *stop, *step, limits)
        }
        ("seq", values) => sequence(values, limits),
        _ => return None,
    })
}

fn element(of: &Value, key: &Value) -> Outcome {
    match of {
        Value::Nil => Err("index of untyped nil".to_owned()),
        Value::Map(fields) => {
            let key = text_of(key)?;
            Ok(fields.borrow().get(&*key).cloned().unwrap_or(Value::Nil))
        }
        Value::List(items) => {
            let at = position(key)?;
            usize::try_from(at)
                .ok()
                .and_then(|at| items.get(at).cloned())
                .ok_or_else(|| format!("index out of range: {at}"))
        }
        Value::Text(text) => {
            let at = position(key)?;
            let byte = usize::try_from(at).ok().and_then(|at| text.as_bytes().get(at).copied());
            byte.map(|byte| Value::Int(byte.into())).ok_or_else(|| format!("index out of range: {at}"))
        }
        other => Err(format!("can't index item of type {}", other.kind())),
    }
}

fn position(key: &Value) -> Result<i64, String> {
    whole(key).map_err(|_| format!("cannot index slice/array with type {}", key.kind()))
}

fn concat(lists: &[Value]) -> Outcome {
    let mut all = Vec::new();
    for list in lists {
        match list {
            Value::List(items) => all.extend(items.iter().cloned()),
            other => return Err(format!("cannot concat type {} as list", other.kind())),
        }
    }
    Ok(Value::list(all))
}

fn slice(of: &Value, bounds: &[Value]) -> Outcome {
    let length = match of {
        Value::List(items) => items.len(),
        Value::Text(text) => text.len(),
        other => return Err(format!("can't slice item of type {}", other.kind())),
    };
    let bound =
        |at: usize, default: usize| bounds.get(at).map_or(Ok(default), |value| whole(value).map(size));
    let (start, end) = (bound(0, 0)?, bound(1, length)?);
    if start > end || end > length {
        return Err(format!("index out of range: {start}:{end} of {length}"));
    }
    match of {
        Value::List(items) => Ok(Value::list(items[start..end].to_vec())),
        Value::Text(text) => {
            text.get(start..end).map(Value::text).ok_or_else(|| "splits a character".to_owned())
        }
        _ => Ok(Value::Nil),
    }
}

fn join(separator: &str, of: &Value, limits: &Limits) -> Outcome {
    let items = match of {
        Value::List(items) => items.iter().filter(|item| !matches!(item, Value::Nil)).map(shown).collect(),
        Value::Nil => Ok(Vec::new()),
        other => shown(other).map(|text| vec![text]),
    };
    let items: Vec<String> = items?;
    if items.len().saturating_mul(separator.len()) > limits.output {
        return Err(format!("the result is longer than {} bytes", limits.output));
    }
    Ok(Value::text(items.join(separator)))
}

fn parts(text: &str, separator: &str, most: Option<usize>) -> Vec<Value> {
    if separator.is_empty() {
        return text.chars().map(|c| Value::text(c.to_string())).collect();
    }
    match most {
        Some(most) => text.splitn(most, separator).map(Value::text).collect(),
        None => text.split(separator).map(Value::text).collect(),
    }
}

/// `_0`, `_1` …
fn numbered(items: Vec<Value>) -> Outcome {
    Ok(Value::map(items.into_iter().enumerate().map(|(at, item)| (format!("_{at}"), item)).collect()))
}

fn counted(start: i64, stop: i64, step: i64, limits: &Limits) -> Outcome {
    if step == 0 || (start < stop) != (step > 0) || start == stop {
        return Ok(Value::list(Vec::new()));
    }
    let count = stop.saturating_sub(start).unsigned_abs().div_ceil(step.unsigned_abs());
    if usize::try_from(count).unwrap_or(usize::MAX) > limits.steps {
        return Err(format!("{count} elements are more than {}", limits.steps));
    }
    let numbers = std::iter::successors(Some(start), |number| number.checked_add(step));
    let count = usize::try_from(count).unwrap_or(0);
    Ok(Value::list(numbers.take(count).map(Value::Int).collect()))
}

fn sequence(values: &[Value], limits: &Limits) -> Outcome {
    let numbers: Vec<i64> = values.iter().map(whole).collect::<Result<_, _>>()?;
    let beyond = |end: i64, step: i64| if step < 0 { end.saturating_sub(1) } else { end.saturating_add(1) };
    let direction = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match numbers[..] {
        [end] => (1, end, direction(1, end)),
        [start, end] => (start, end, direction(start, end)),
        [start, step, end] => (start, end, step),
        _ => return Ok(Value::text("")),
    };
    let numbers = counted(start, beyond(end, step), step, limits)?;
    join(" ", &numbers, limits)
}
