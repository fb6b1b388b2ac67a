//! List functions of Kubernetes and of cel-go's extension.

use std::cmp::Ordering;

use super::convert::printed_type;
use super::{Outcome, fail, no_such_overload, operators};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::{List, Value};

pub(crate) fn is_list(value: &Value<'_>) -> bool {
    matches!(value, Value::List(_))
}

/// The list argument of a function that traverses it once.
fn list<'v, 'a>(meter: &mut Meter, args: &'v [Value<'a>]) -> Result<&'v List<'a>, EvalError> {
    match args.first() {
        Some(Value::List(list)) => {
            meter.work(list.len())?;
            Ok(list)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn new_list<'a>(items: Vec<Value<'a>>) -> Outcome<'a> {
    Ok(Value::List(List::owned(items)))
}

pub(crate) fn is_sorted<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let mut previous: Option<Value<'a>> = None;
    for item in list(meter, args)?.iter() {
        let item = item?;
        if !item.is_comparable() {
            return no_such_overload();
        }
        if let Some(previous) = &previous
            && matches!(previous.compare(&item), Ok(Ordering::Greater))
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(meter: &mut Meter, args: &[Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let mut total = zero;
    for item in list(meter, args)?.iter() {
        total = operators::add(meter, &[total, item?])?;
    }
    Ok(total)
}

pub(crate) fn sum_int<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    sum(meter, args, Value::Int(0))
}

pub(crate) fn sum_uint<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    sum(meter, args, Value::Uint(0))
}

pub(crate) fn sum_double<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    sum(meter, args, Value::Double(0.0))
}

pub(crate) fn sum_duration<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    sum(meter, args, Value::Duration(0))
}

fn extreme<'a>(meter: &mut Meter, args: &[Value<'a>], name: &str, replace_if: Ordering) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list(meter, args)?.iter() {
        let item = item?;
        if !item.is_comparable() {
            return no_such_overload();
        }
        let replaces = match &best {
            None => true,
            Some(best) => best.compare(&item).is_ok_and(|order| order == replace_if),
        };
        if replaces {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

pub(crate) fn min<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    extreme(meter, args, "min", Ordering::Greater)
}

pub(crate) fn max<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    extreme(meter, args, "max", Ordering::Less)
}

pub(crate) fn index_of<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    for (index, item) in list(meter, args)?.iter().enumerate() {
        match item.and_then(|item| item.equals(&args[1], meter)) {
            Ok(true) => return Ok(Value::Int(index as i64)),
            Err(error) if !error.is_absorbable() => return Err(error),
            _ => {}
        }
    }
    Ok(Value::Int(-1))
}

pub(crate) fn last_index_of<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(meter, args)?;
    for index in (0..list.len()).rev() {
        let Some(item) = list.get(index) else { break };
        match item.and_then(|item| item.equals(&args[1], meter)) {
            Ok(true) => return Ok(Value::Int(index as i64)),
            Err(error) if !error.is_absorbable() => return Err(error),
            _ => {}
        }
    }
    Ok(Value::Int(-1))
}

pub(crate) fn slice<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return no_such_overload() };
    if *start < 0 || *end < 0 {
        return fail(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return fail(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if list.len() < *end as u64 {
        return fail(format!("cannot slice({start}, {end}), list is length {}", list.len()));
    }
    meter.work((end - start) as u64)?;
    let items: Result<Vec<_>, _> = (*start as u64..*end as u64).map_while(|i| list.get(i)).collect();
    new_list(items?)
}

pub(crate) fn flatten<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let depth = match args {
        [Value::List(_)] => 1,
        [Value::List(_), Value::Int(depth)] => *depth,
        _ => {
            let types: Vec<&str> = args[1..].iter().map(printed_type).collect();
            return fail(format!(
                "no such overload: {}.flatten({})",
                printed_type(&args[0]),
                types.join(", ")
            ));
        }
    };
    if depth < 0 {
        return fail("level must be non-negative");
    }
    let mut items = Vec::new();
    let outer = list(meter, args)?;
    flatten_into(meter, outer, depth, &mut items)?;
    new_list(items)
}

fn flatten_into<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    depth: i64,
    items: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    for item in list.iter() {
        match item? {
            Value::List(nested) if depth > 0 => flatten_into(meter, &nested, depth - 1, items)?,
            item => {
                // The cost only covers the outer list; the result is bounded like text.
                meter.allocate(std::mem::size_of::<Value<'_>>())?;
                items.push(item);
            }
        }
    }
    Ok(())
}

pub(crate) fn sort<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(meter, args)?;
    sorted(list, list)
}

pub(crate) fn sort_by_keys<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::List(list), Value::List(keys)] => {
            meter.work(list.len().saturating_add(keys.len()))?;
            sorted(list, keys)
        }
        _ => no_such_overload(),
    }
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    if list.len() != keys.len() {
        return fail(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        ));
    }
    if list.is_empty() {
        return Ok(Value::List(list.clone()));
    }
    let keys: Vec<Value<'a>> = keys.iter().collect::<Result<_, _>>()?;
    if !keys[0].is_comparable() {
        return fail("list elements must be comparable");
    }
    if keys.iter().any(|key| key.type_name() != keys[0].type_name()) {
        return fail("list elements must have the same type");
    }
    let mut order: Vec<u64> = (0..list.len()).collect();
    order.sort_by(|a, b| keys[*a as usize].compare(&keys[*b as usize]).unwrap_or(Ordering::Equal));
    let items: Result<Vec<_>, _> = order.into_iter().map_while(|index| list.get(index)).collect();
    new_list(items?)
}

pub(crate) fn range<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::Int(end) = args[0] else { return no_such_overload() };
    let end = end.max(0);
    meter.allocate((end as usize).saturating_mul(std::mem::size_of::<Value<'_>>()))?;
    new_list((0..end).map(Value::Int).collect())
}

pub(crate) fn reverse<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(meter, args)?;
    let items: Result<Vec<_>, _> = (0..list.len()).rev().map_while(|index| list.get(index)).collect();
    new_list(items?)
}

pub(crate) fn distinct<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(meter, args)?;
    if list.is_empty() {
        return Ok(args[0].clone());
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let mut seen = false;
        for other in &unique {
            match item.equals(other, meter) {
                Ok(equal) => seen = equal,
                Err(error) if !error.is_absorbable() => return Err(error),
                Err(_) => {}
            }
            if seen {
                break;
            }
        }
        if !seen {
            unique.push(item);
        }
    }
    new_list(unique)
}
