//! Lists as sets.

use super::{Outcome, no_such_overload};
use crate::eval::Meter;
use crate::value::{List, Value};

fn lists<'v, 'a>(args: &'v [Value<'a>]) -> Option<(&'v List<'a>, &'v List<'a>)> {
    match args {
        [Value::List(a), Value::List(b)] => Some((a, b)),
        _ => None,
    }
}

fn contains_all<'a>(meter: &mut Meter, list: &List<'a>, sublist: &List<'a>) -> Outcome<'a> {
    for item in sublist.iter() {
        if !list.contains(&item?, meter)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

pub(crate) fn contains<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((list, sublist)) = lists(args) else { return no_such_overload() };
    contains_all(meter, list, sublist)
}

pub(crate) fn equivalent<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((a, b)) = lists(args) else { return no_such_overload() };
    match contains_all(meter, a, b)? {
        Value::Bool(true) => contains_all(meter, b, a),
        no => Ok(no),
    }
}

pub(crate) fn intersects<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((a, b)) = lists(args) else { return no_such_overload() };
    for item in a.iter() {
        match item.and_then(|item| b.contains(&item, meter)) {
            Ok(true) => return Ok(Value::Bool(true)),
            Err(error) if !error.is_absorbable() => return Err(error),
            _ => {}
        }
    }
    Ok(Value::Bool(false))
}
