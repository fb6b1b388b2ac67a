//! Ordering of values.

use std::cmp::Ordering;

use super::Value;
use crate::error::EvalError;

impl<'a> Value<'a> {
    /// Whether `<` and the other relations are defined for the type.
    pub(crate) fn is_comparable(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Int(_)
                | Self::Uint(_)
                | Self::Double(_)
                | Self::String(_)
                | Self::Bytes(_)
                | Self::Timestamp(_)
                | Self::Duration(_)
        )
    }

    /// Orders two values; numbers of different types compare by value.
    pub(crate) fn compare(&self, other: &Value<'a>) -> Result<Ordering, EvalError> {
        if let (Self::Double(_), _) | (_, Self::Double(_)) = (self, other) {
            let nan = |value: &Value<'_>| matches!(value, Value::Double(d) if d.is_nan());
            let numeric =
                |value: &Value<'_>| matches!(value, Value::Double(_) | Value::Int(_) | Value::Uint(_));
            if nan(self) || (numeric(self) && nan(other)) {
                return Err(EvalError::new("NaN values cannot be ordered"));
            }
        }
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Ok(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Ok(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Ok(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Ok(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Ok(a.cmp(b)),
            _ => self.compare_number(other).ok_or_else(EvalError::no_such_overload),
        }
    }

    /// Orders two numbers; `None` if one is not a number or is NaN.
    pub(crate) fn compare_number(&self, other: &Value<'a>) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Uint(b)) => Some(u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b))),
            (Self::Uint(a), Self::Int(b)) => Some(u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b))),
            (Self::Double(a), Self::Int(b)) => double_to_int(*a, *b),
            (Self::Int(a), Self::Double(b)) => double_to_int(*b, *a).map(Ordering::reverse),
            (Self::Double(a), Self::Uint(b)) => double_to_uint(*a, *b),
            (Self::Uint(a), Self::Double(b)) => double_to_uint(*b, *a).map(Ordering::reverse),
            _ => None,
        }
    }
}

// As cel-go: within the range of the integer type the integer is rounded to a double.
fn double_to_int(double: f64, int: i64) -> Option<Ordering> {
    if double < i64::MIN as f64 {
        Some(Ordering::Less)
    } else if double > i64::MAX as f64 {
        Some(Ordering::Greater)
    } else {
        double.partial_cmp(&(int as f64))
    }
}

fn double_to_uint(double: f64, uint: u64) -> Option<Ordering> {
    if double < 0.0 {
        Some(Ordering::Less)
    } else if double > u64::MAX as f64 {
        Some(Ordering::Greater)
    } else {
        double.partial_cmp(&(uint as f64))
    }
}
