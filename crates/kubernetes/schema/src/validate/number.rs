//! Bounds of numbers. They are compared in the type of the value: an integer with the bound truncated to an integer,
//! as upstream does. A bound that does not fit the declared type is an error itself.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::findings::{Findings, Name};
use super::types::Types;
use crate::golang;
use crate::schema::{Checks, TypeName};

/// Go's conversion of a float on amd64: out of range gives the smallest integer.
pub fn to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// Whether a float is an integer, within rounding.
pub fn is_json_integer(value: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !(-MAX_SAFE..=MAX_SAFE).contains(&value) {
        return false;
    }
    if value == value.trunc() {
        return true;
    }
    // The comparison uses an unsigned conversion, so a negative fraction never matches.
    let whole = if value < 0.0 { value.trunc() as i64 as u64 as f64 } else { value.trunc() };
    whole != 0.0 && (value - whole).abs() / (value.abs() + whole.abs()) < 1e-9
}

struct Checked<'a, 'b> {
    name: &'a Name<'a>,
    kind: Option<TypeName>,
    format: &'a str,
    out: &'a mut Findings<'b>,
}

pub fn check(
    number: &Number,
    checks: Option<&Checks>,
    types: &Types,
    format: Option<&str>,
    name: &Name<'_>,
    out: &mut Findings<'_>,
) {
    let kind = types.single().filter(|kind| matches!(kind, TypeName::Integer | TypeName::Number));
    let format = match (kind, format) {
        (Some(TypeName::Integer), Some(format @ ("int32" | "int64")))
        | (Some(TypeName::Number), Some(format @ ("float" | "double"))) => format,
        _ => "",
    };
    let mut check = Checked { name, kind, format, out };
    let integer = number.as_i64().filter(|_| number.is_i64());
    let float = number.as_f64().unwrap_or_default();
    match integer {
        Some(value) => check.fits(Fit::Integer(value), "Checked"),
        None => check.fits(Fit::Float(float), "Checked"),
    };
    let Some(checks) = checks else { return };
    if let Some(factor) = checks.multiple_of {
        let fits = check.fits(Fit::Float(factor), "MultipleOf");
        match integer.filter(|_| fits) {
            Some(value) => check.multiple_of_integer(value, to_i64(factor)),
            None => check.multiple_of_float(float, factor),
        }
    }
    if let Some(bound) = checks.minimum {
        let fits = check.fits(Fit::Float(bound), "Minimum boundary");
        check.bound(Side::Lower, checks.exclusive_minimum, bound, integer.filter(|_| fits), float);
    }
    if let Some(bound) = checks.maximum {
        let fits = check.fits(Fit::Float(bound), "Maximum boundary");
        check.bound(Side::Upper, checks.exclusive_maximum, bound, integer.filter(|_| fits), float);
    }
}

#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

#[derive(Clone, Copy)]
enum Fit {
    Integer(i64),
    Float(f64),
}

impl Checked<'_, '_> {
    /// Whether a number fits the declared type and format. If not, reports an error.
    fn fits(&mut self, number: Fit, what: &str) -> bool {
        let fits = match (self.kind, self.format, number) {
            (Some(TypeName::Integer), "int32", Fit::Integer(value)) => i32::try_from(value).is_ok(),
            (Some(TypeName::Integer), "int32", Fit::Float(value)) => {
                value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value)
            }
            (Some(TypeName::Integer), _, Fit::Float(value)) => {
                value.fract() == 0.0
                    && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value)
            }
            (_, "float", Fit::Integer(_)) => true,
            (_, "float", Fit::Float(value)) => (value as f32).is_finite(),
            _ => true,
        };
        if !fits {
            let (name, kind) = (self.name, self.kind.map_or("", TypeName::as_str));
            self.out.composite(match self.format {
                "" => format!("{what} value must be of type {kind} (default format) in {name}"),
                format => format!("{what} value must be of type {kind} with format {format} in {name}"),
            });
        }
        fits
    }

    /// Compares as integers if the value is one, else as floats.
    fn bound(&mut self, side: Side, exclusive: bool, bound: f64, integer: Option<i64>, float: f64) {
        let ordering = match integer {
            Some(value) => Some(value.cmp(&to_i64(bound))),
            None => float.partial_cmp(&bound),
        };
        let (beyond, words) = match side {
            Side::Lower => (Ordering::Less, ["greater than or equal to", "greater than"]),
            Side::Upper => (Ordering::Greater, ["less than or equal to", "less than"]),
        };
        let wrong = ordering == Some(beyond) || (exclusive && ordering == Some(Ordering::Equal));
        if wrong {
            let (name, word) = (self.name, words[usize::from(exclusive)]);
            let (value, bound): (Value, String) = match integer {
                Some(value) => (value.into(), to_i64(bound).to_string()),
                None => (float.into(), golang::float(bound)),
            };
            self.out.invalid(name, value, format!("{name} in body should be {word} {bound}"));
        }
    }

    fn multiple_of_integer(&mut self, value: i64, factor: i64) {
        let name = self.name;
        if factor <= 0 {
            let detail = format!("factor MultipleOf declared for {name} must be positive: {factor}");
            self.out.invalid(name, factor.into(), detail);
        } else if value % factor != 0 {
            self.out.invalid(name, value.into(), format!("{name} in body should be a multiple of {factor}"));
        }
    }

    fn multiple_of_float(&mut self, value: f64, factor: f64) {
        let (name, shown) = (self.name, golang::float(factor));
        if factor <= 0.0 {
            let detail = format!("factor MultipleOf declared for {name} must be positive: {shown}");
            self.out.invalid(name, factor.into(), detail);
            return;
        }
        let multiple = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
        if !is_json_integer(multiple) {
            self.out.invalid(name, value.into(), format!("{name} in body should be a multiple of {shown}"));
        }
    }
}
