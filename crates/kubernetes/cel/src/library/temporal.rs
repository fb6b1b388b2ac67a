//! Parts of timestamps and durations.

use jiff::tz::TimeZone;

use super::{Outcome, no_such_overload};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::Value;
use crate::value::time::{Civil, Timestamp};

/// The UTC offset in seconds of the time zone argument; UTC without one.
fn offset(t: &Timestamp, zone: Option<&Value<'_>>) -> Result<i64, EvalError> {
    let zone = match zone {
        None => return Ok(0),
        Some(Value::String(zone)) => &**zone,
        Some(_) => return Err(EvalError::no_such_overload()),
    };
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named_offset(t, zone);
    };
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| EvalError::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    Ok(hours.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60))
}

fn named_offset(t: &Timestamp, zone: &str) -> Result<i64, EvalError> {
    if matches!(zone, "" | "UTC") {
        return Ok(0);
    }
    let unknown = || EvalError::new(format!("unknown time zone {zone}"));
    let zone = TimeZone::get(zone).map_err(|_| unknown())?;
    let instant = jiff::Timestamp::from_second(t.seconds).map_err(|_| unknown())?;
    Ok(i64::from(zone.to_offset(instant).seconds()))
}

fn part<'a>(args: &[Value<'a>], of: fn(&Civil) -> i64) -> Outcome<'a> {
    match &args[0] {
        Value::Timestamp(t) => Ok(Value::Int(of(&t.civil(offset(t, args.get(1))?)))),
        _ => no_such_overload(),
    }
}

fn part_or_total<'a>(args: &[Value<'a>], of: fn(&Civil) -> i64, nanos_per_unit: i64) -> Outcome<'a> {
    match &args[0] {
        Value::Duration(nanos) => Ok(Value::Int(nanos / nanos_per_unit)),
        _ => part(args, of),
    }
}

pub(crate) fn full_year<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.year)
}

pub(crate) fn month<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.month - 1)
}

pub(crate) fn day_of_year<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.day_of_year)
}

pub(crate) fn day_of_month<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.day - 1)
}

pub(crate) fn date<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.day)
}

pub(crate) fn day_of_week<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |civil| civil.weekday)
}

pub(crate) fn hours<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_total(args, |civil| civil.hour, 3_600_000_000_000)
}

pub(crate) fn minutes<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_total(args, |civil| civil.minute, 60_000_000_000)
}

pub(crate) fn seconds<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_total(args, |civil| civil.second, 1_000_000_000)
}

pub(crate) fn milliseconds<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Duration(nanos) => Ok(Value::Int(nanos / 1_000_000)),
        Value::Timestamp(t) => {
            offset(t, args.get(1))?;
            Ok(Value::Int(i64::from(t.nanos / 1_000_000)))
        }
        _ => no_such_overload(),
    }
}
