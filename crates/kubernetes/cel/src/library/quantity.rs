//! `kubernetes.Quantity`: exact decimal amounts with SI suffixes.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{Opaque, Outcome, fail, no_such_overload};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::Value;

const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";
/// Limit of digits before and after the decimal point. Upstream has none.
const MAX_DIGITS: i64 = 20_000;
const NANO: i64 = -9;

/// A quantity. As upstream it is an integer with a decimal scale where that fits, which decides whether it counts as
/// an integer, and an arbitrary-precision decimal otherwise.
#[derive(Clone, Debug)]
pub enum Quantity {
    #[doc(hidden)]
    Small { value: i64, scale: i32 },
    #[doc(hidden)]
    Big(Decimal),
}

/// `digits × 10^exponent`, digits most significant first and without leading zeros.
#[derive(Clone, Debug)]
pub struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Quantity {
    pub(crate) fn parse(s: &str) -> Result<Self, &'static str> {
        if s.is_empty() {
            return Err(FORMAT);
        }
        let parts = Parts::split(s)?;
        let (base, exponent) = suffix(parts.suffix).ok_or(SUFFIX)?;
        if let Some(small) = parts.small(base, exponent)? {
            return Ok(small);
        }
        let mut amount = Decimal::parse(parts.value).ok_or(NUMERIC)?;
        if base == 10 {
            amount.exponent += exponent;
        } else {
            amount.multiply(1 << exponent);
        }
        amount.check_size().ok_or(NUMERIC)?;
        if !amount.digits.is_empty() {
            amount.round_up_to_nano();
        }
        if base == 2 && amount.magnitude(&Decimal::of(i64::MAX, 0)) == Ordering::Greater {
            amount = Decimal { negative: amount.negative, ..Decimal::of(i64::MAX, 0) };
        }
        Ok(Self::Big(amount))
    }

    fn decimal(&self) -> Decimal {
        match self {
            Self::Small { value, scale } => Decimal::of(*value, i64::from(*scale)),
            Self::Big(decimal) => decimal.clone(),
        }
    }

    fn sign(&self) -> i64 {
        match self {
            Self::Small { value, .. } => value.signum(),
            Self::Big(decimal) if decimal.digits.is_empty() => 0,
            Self::Big(decimal) if decimal.negative => -1,
            Self::Big(_) => 1,
        }
    }

    fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Small { value, scale } => scale_up(*value, *scale),
            Self::Big(_) => None,
        }
    }

    fn as_float(&self) -> f64 {
        let (base, exponent) = match self {
            Self::Small { value, scale } => (*value as f64, i64::from(*scale)),
            Self::Big(decimal) => (decimal.unscaled(), decimal.exponent),
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.decimal().compare(&other.decimal())
    }

    fn add(&self, other: &Self) -> Result<Self, EvalError> {
        if let (Self::Small { value: a, scale: x }, Self::Small { value: b, scale: y }) = (self, other)
            && let Some(sum) = add_small((*a, *x), (*b, *y))
        {
            return Ok(sum);
        }
        let sum = self.decimal().add(&other.decimal());
        sum.map(Self::Big).ok_or_else(|| EvalError::new(NUMERIC))
    }

    fn negated(&self) -> Self {
        match self {
            // In Go the smallest value is its own negative.
            Self::Small { value, scale } => Self::Small { value: value.wrapping_neg(), scale: *scale },
            Self::Big(decimal) => Self::Big(Decimal { negative: !decimal.negative, ..decimal.clone() }),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = self.decimal();
        let sign = if decimal.negative { "-" } else { "" };
        let digits: String = decimal.digits.iter().map(|d| char::from(d + b'0')).collect();
        let digits = if digits.is_empty() { "0" } else { &digits };
        match decimal.exponent {
            0 => write!(f, "{sign}{digits}"),
            exponent => write!(f, "{sign}{digits}e{exponent}"),
        }
    }
}

/// The parts of a quantity's text.
struct Parts<'s> {
    positive: bool,
    /// Sign and number without the suffix.
    value: &'s str,
    whole: &'s str,
    fraction: &'s str,
    suffix: &'s str,
}

impl<'s> Parts<'s> {
    fn split(s: &'s str) -> Result<Self, &'static str> {
        let positive = !s.starts_with('-');
        let unsigned = s.strip_prefix(['-', '+']).unwrap_or(s);
        let trimmed = unsigned.trim_start_matches('0');
        if trimmed.is_empty() {
            return Ok(Self { positive, value: "0", whole: "0", fraction: "", suffix: "" });
        }
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, mut rest) = trimmed.split_at(digits(trimmed));
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction, rest) = after.split_at(digits(after));
        }
        let value = &s[..s.len() - rest.len()];
        let letters = rest.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let mut tail = &rest[letters..];
        tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
        if !tail.bytes().all(|b| b.is_ascii_digit()) {
            return Err(FORMAT);
        }
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Self { positive, value, whole, fraction, suffix: rest })
    }

    /// The quantity as a scaled integer, if it is short enough.
    fn small(&self, base: u32, exponent: i64) -> Result<Option<Quantity>, &'static str> {
        let (whole, fraction) = (self.whole.len() as i64, self.fraction.len() as i64);
        let (mut scale, precision, mantissa) = match base {
            10 => (exponent, 18 - whole - fraction, 1i64),
            _ if fraction == 0 => (0, 15 - whole - (exponent as f32 * 3.0 / 10.0) as i64 - 1, 1 << exponent),
            _ => return Ok(None),
        };
        scale -= fraction;
        if precision < 0 || scale < NANO {
            return Ok(None);
        }
        let value: i64 = format!("{}{}", self.whole, self.fraction).parse().map_err(|_| NUMERIC)?;
        let Ok(scale) = i32::try_from(scale) else { return Ok(None) };
        Ok(value
            .checked_mul(mantissa)
            .map(|value| Quantity::Small { value: if self.positive { value } else { -value }, scale }))
    }
}

/// Base and exponent of a suffix.
fn suffix(suffix: &str) -> Option<(u32, i64)> {
    Some(match suffix {
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "" => (10, 0),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Upstream truncates the number without a check.
            (10, i64::from(exponent as i32))
        }
    })
}

fn scale_up(value: i64, scale: i32) -> Option<i64> {
    if value == 0 && scale >= 0 {
        return Some(0);
    }
    value.checked_mul(10i64.checked_pow(u32::try_from(scale).ok()?)?)
}

fn add_small((a, x): (i64, i32), (b, y): (i64, i32)) -> Option<Quantity> {
    if b == 0 {
        return Some(Quantity::Small { value: a, scale: x });
    }
    if a == 0 {
        return Some(Quantity::Small { value: b, scale: y });
    }
    let scale = x.min(y);
    let value = scale_up(a, x - scale)?.checked_add(scale_up(b, y - scale)?)?;
    Some(Quantity::Small { value, scale })
}

fn power_of_ten(exponent: i64) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

impl Decimal {
    fn of(value: i64, exponent: i64) -> Self {
        let digits: Vec<u8> = value.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect();
        let digits = if value == 0 { Vec::new() } else { digits };
        Self { negative: value < 0, digits, exponent }
    }

    fn parse(s: &str) -> Option<Self> {
        let negative = s.starts_with('-');
        let unsigned = s.strip_prefix(['-', '+']).unwrap_or(s);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|b| b.is_ascii_digit().then(|| b - b'0'))
            .collect::<Option<_>>()?;
        let leading = digits.iter().take_while(|d| **d == 0).count();
        Some(Self { negative, digits: digits[leading..].to_vec(), exponent: -(fraction.len() as i64) })
    }

    fn check_size(&self) -> Option<()> {
        let len = self.digits.len() as i64;
        let fits = len <= MAX_DIGITS && self.exponent.abs() <= MAX_DIGITS;
        (fits || self.digits.is_empty()).then_some(())
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0u128;
        for digit in self.digits.iter_mut().rev() {
            let product = u128::from(*digit) * u128::from(factor) + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        while carry > 0 {
            self.digits.insert(0, (carry % 10) as u8);
            carry /= 10;
        }
    }

    /// Rounds away from zero to nine places, and keeps all nine digits as upstream does.
    fn round_up_to_nano(&mut self) {
        if self.exponent < NANO {
            let drop = ((NANO - self.exponent) as usize).min(self.digits.len());
            let lost = self.digits.split_off(self.digits.len() - drop).iter().any(|d| *d != 0);
            if lost {
                let one = Self { negative: false, digits: vec![1], exponent: 0 };
                let whole = Self { negative: false, digits: std::mem::take(&mut self.digits), exponent: 0 };
                self.digits = add_magnitudes(&whole.digits, &one.digits);
            }
        } else {
            let zeros = (self.exponent - NANO) as usize;
            self.digits.resize(self.digits.len() + zeros, 0);
        }
        self.exponent = NANO;
    }

    fn unscaled(&self) -> f64 {
        let digits: String = self.digits.iter().map(|d| char::from(d + b'0')).collect();
        let magnitude: f64 = if digits.is_empty() { 0.0 } else { digits.parse().unwrap_or(f64::NAN) };
        if self.negative { -magnitude } else { magnitude }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let top = |decimal: &Self| decimal.digits.len() as i64 + decimal.exponent;
        top(self).cmp(&top(other)).then_with(|| {
            let len = self.digits.len().max(other.digits.len());
            let padded = |decimal: &Self| {
                let digits = decimal.digits.clone();
                digits.into_iter().chain(std::iter::repeat(0)).take(len).collect::<Vec<u8>>()
            };
            padded(self).cmp(&padded(other))
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let negative = |decimal: &Self| decimal.negative && !decimal.digits.is_empty();
        match (negative(self), negative(other)) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    fn add(&self, other: &Self) -> Option<Self> {
        self.check_size()?;
        other.check_size()?;
        let exponent = self.exponent.min(other.exponent);
        let aligned = |decimal: &Self| {
            let mut digits = decimal.digits.clone();
            if !digits.is_empty() {
                digits.resize(digits.len() + (decimal.exponent - exponent) as usize, 0);
            }
            digits
        };
        let (a, b) = (aligned(self), aligned(other));
        if self.negative == other.negative {
            return Some(Self { negative: self.negative, digits: add_magnitudes(&a, &b), exponent });
        }
        Some(match self.magnitude(other) {
            Ordering::Less => {
                Self { negative: other.negative, digits: subtract_magnitudes(&b, &a), exponent }
            }
            _ => Self { negative: self.negative, digits: subtract_magnitudes(&a, &b), exponent },
        })
    }
}

fn add_magnitudes(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    let mut carry = 0;
    let (mut a, mut b) = (a.iter().rev(), b.iter().rev());
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() && carry == 0 {
            break;
        }
        let digit = x.copied().unwrap_or(0) + y.copied().unwrap_or(0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.reverse();
    sum
}

/// `a - b` where a is at least b.
fn subtract_magnitudes(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = Vec::with_capacity(a.len());
    let mut borrow = 0;
    let mut b = b.iter().rev();
    for digit in a.iter().rev() {
        let mut value = *digit as i8 - b.next().copied().unwrap_or(0) as i8 - borrow;
        borrow = 0;
        if value < 0 {
            value += 10;
            borrow = 1;
        }
        difference.push(value as u8);
    }
    while difference.last() == Some(&0) {
        difference.pop();
    }
    difference.reverse();
    difference
}

fn quantity<'v>(value: &'v Value<'_>) -> Option<&'v Quantity> {
    match value {
        Value::Opaque(Opaque::Quantity(quantity, _)) => Some(quantity),
        _ => None,
    }
}

fn unary<'a>(args: &[Value<'a>], run: impl Fn(&Quantity) -> Outcome<'a>) -> Outcome<'a> {
    quantity(&args[0]).map_or_else(no_such_overload, run)
}

fn compared<'a>(args: &[Value<'a>], run: impl Fn(Ordering) -> Value<'a>) -> Outcome<'a> {
    match (quantity(&args[0]), quantity(&args[1])) {
        (Some(a), Some(b)) => Ok(run(a.compare(b))),
        _ => no_such_overload(),
    }
}

pub(crate) fn parse<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::String(s) = &args[0] else { return no_such_overload() };
    match Quantity::parse(s) {
        Ok(quantity) => Ok(Value::Opaque(Opaque::Quantity(Arc::new(quantity), false))),
        Err(message) => fail(message),
    }
}

pub(crate) fn is_quantity<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::String(s) = &args[0] else { return no_such_overload() };
    Ok(Value::Bool(Quantity::parse(s).is_ok()))
}

pub(crate) fn sign<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    unary(args, |quantity| Ok(Value::Int(quantity.sign())))
}

pub(crate) fn is_integer<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    unary(args, |quantity| Ok(Value::Bool(quantity.as_integer().is_some())))
}

pub(crate) fn as_integer<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    unary(args, |quantity| match quantity.as_integer() {
        Some(value) => Ok(Value::Int(value)),
        None => fail("cannot convert value to integer"),
    })
}

pub(crate) fn as_float<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    unary(args, |quantity| Ok(Value::Double(quantity.as_float())))
}

pub(crate) fn is_greater_than<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Bool(order.is_gt()))
}

pub(crate) fn is_less_than<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Bool(order.is_lt()))
}

pub(crate) fn compare_to<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Int(order as i64))
}

/// The right side of `add` and `sub`: another quantity or an int.
fn operand(value: &Value<'_>) -> Option<Quantity> {
    match value {
        Value::Int(value) => Some(Quantity::Small { value: *value, scale: 0 }),
        value => quantity(value).cloned(),
    }
}

pub(crate) fn add<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (quantity(&args[0]), operand(&args[1])) {
        (Some(a), Some(b)) => Ok(Value::Opaque(Opaque::Quantity(Arc::new(a.add(&b)?), true))),
        _ => no_such_overload(),
    }
}

pub(crate) fn sub<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (quantity(&args[0]), operand(&args[1])) {
        (Some(a), Some(b)) => Ok(Value::Opaque(Opaque::Quantity(Arc::new(a.add(&b.negated())?), true))),
        _ => no_such_overload(),
    }
}
