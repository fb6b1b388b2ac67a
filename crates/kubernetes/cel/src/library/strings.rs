//! String functions. Indices count code points.

use super::{Outcome, fail, format_string, no_such_overload};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::{List, Value};

fn out_of_range<'a>(index: i64) -> Outcome<'a> {
    fail(format!("index out of range: {index}"))
}

/// The byte position of a code point, or the length for the one after the last.
fn position(s: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    s.char_indices().map(|(at, _)| at).chain([s.len()]).nth(index)
}

fn count(s: &str) -> i64 {
    s.chars().count() as i64
}

fn owned<'a>(meter: &mut Meter, text: &str) -> Outcome<'a> {
    meter.allocate(text.len())?;
    Ok(Value::string(text))
}

pub(crate) fn char_at<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(s), Value::Int(index)] = args else { return no_such_overload() };
    let Some(at) = position(s, *index) else { return out_of_range(*index) };
    Ok(Value::string(s[at..].chars().next().map_or_else(String::new, String::from)))
}

pub(crate) fn index_of<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (s, part, offset) = match args {
        [Value::String(s), Value::String(part)] => (s, part, 0),
        [Value::String(s), Value::String(part), Value::Int(offset)] => (s, part, *offset),
        _ => return no_such_overload(),
    };
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    let found = position(s, offset).and_then(|from| s[from..].find(&**part).map(|at| from + at));
    Ok(Value::Int(found.map_or(-1, |at| count(&s[..at]))))
}

pub(crate) fn last_index_of<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (s, part, offset) = match args {
        [Value::String(s), Value::String(part)] => {
            let len = count(s);
            if part.is_empty() {
                return Ok(Value::Int(len));
            }
            if s.len() < part.len() {
                return Ok(Value::Int(-1));
            }
            (s, part, len - 1)
        }
        [Value::String(s), Value::String(part), Value::Int(offset)] => (s, part, *offset),
        _ => return no_such_overload(),
    };
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    if offset >= count(s) {
        return Ok(Value::Int(-1));
    }
    // A match may start at the offset and reach beyond it.
    let end = position(s, offset.saturating_add(count(part))).unwrap_or(s.len());
    Ok(Value::Int(s[..end].rfind(&**part).map_or(-1, |at| count(&s[..at]))))
}

pub(crate) fn lower_ascii<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(s)] = args else { return no_such_overload() };
    owned(meter, &s.to_ascii_lowercase())
}

pub(crate) fn upper_ascii<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(s)] = args else { return no_such_overload() };
    owned(meter, &s.to_ascii_uppercase())
}

pub(crate) fn trim<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(s)] = args else { return no_such_overload() };
    owned(meter, s.trim())
}

pub(crate) fn replace<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (s, old, new, limit) = match args {
        [Value::String(s), Value::String(old), Value::String(new)] => (s, old, new, -1),
        [Value::String(s), Value::String(old), Value::String(new), Value::Int(n)] => (s, old, new, *n),
        _ => return no_such_overload(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches = if limit == 0 { 0 } else { s.matches(&**old).count().min(limit) };
    if matches == 0 || **old == **new {
        return Ok(args[0].clone());
    }
    meter.allocate(s.len().saturating_add(matches.saturating_mul(new.len())))?;
    Ok(Value::string(s.replacen(&**old, new, limit)))
}

pub(crate) fn split<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (s, separator, limit) = match args {
        [Value::String(s), Value::String(separator)] => (s, separator, -1),
        [Value::String(s), Value::String(separator), Value::Int(n)] => (s, separator, *n),
        _ => return no_such_overload(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::List(List::owned(Vec::new())));
    }
    let parts: Vec<&str> =
        if separator.is_empty() { explode(s, limit) } else { s.splitn(limit, &**separator).collect() };
    let size = std::mem::size_of::<Value<'_>>();
    meter.allocate(s.len().saturating_add(parts.len().saturating_mul(size)))?;
    Ok(Value::strings(parts))
}

/// Single characters. The last part has the rest if there are more than the limit.
fn explode(s: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = s;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (head, tail) = rest.split_at(c.len_utf8());
        parts.push(head);
        rest = tail;
    }
    parts
}

pub(crate) fn substring<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (s, start, end) = match args {
        [Value::String(s), Value::Int(start)] => (s, *start, None),
        [Value::String(s), Value::Int(start), Value::Int(end)] => (s, *start, Some(*end)),
        _ => return no_such_overload(),
    };
    if let Some(end) = end
        && start > end
    {
        return fail(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let Some(from) = position(s, start) else { return out_of_range(start) };
    let to = match end {
        None => s.len(),
        Some(end) => match position(s, end) {
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    owned(meter, &s[from..to])
}

pub(crate) fn join<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_such_overload(),
    };
    let mut text = String::new();
    for (i, item) in list.iter().enumerate() {
        let item = item?;
        let Value::String(part) = &item else {
            return Err(EvalError::new(format!("join: invalid input: {item}")));
        };
        meter.allocate(part.len() + separator.len())?;
        if i > 0 {
            text.push_str(separator);
        }
        text.push_str(part);
    }
    Ok(Value::string(text))
}

pub(crate) fn quote<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(s)] = args else { return no_such_overload() };
    meter.allocate(s.len() * 2 + 2)?;
    let mut text = String::with_capacity(s.len() + 2);
    text.push('"');
    for c in s.chars() {
        match c {
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0b' => text.push_str("\\v"),
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            c => text.push(c),
        }
    }
    text.push('"');
    Ok(Value::string(text))
}

pub(crate) fn format<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(pattern), Value::List(list)] = args else { return no_such_overload() };
    Ok(Value::string(format_string::format(meter, pattern, list)?))
}

/// `jsonpatch.escapeKey(key)`: a key as a segment of a JSON pointer.
pub(crate) fn escape_json_pointer<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(key)] = args else { return super::no_such_overload() };
    meter.allocate(key.len().saturating_mul(2))?;
    Ok(Value::string(key.replace('~', "~0").replace('/', "~1")))
}
