//! `resource.Quantity`: parsing, comparing, and the canonical text that Kubernetes stores.

use std::cmp::Ordering;
use std::fmt;

/// Why a text is not a quantity, with upstream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number and a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number is malformed.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalExponent,
    DecimalSi,
    BinarySi,
}

/// `digits × 10^exponent`, digits without leading or trailing zeros, empty for zero.
#[derive(Debug, Clone)]
pub struct Quantity {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
    format: Format,
    /// The original text, where upstream keeps it because it looks canonical.
    kept: Option<String>,
}

/// Precision: nano.
const NANO: i64 = -9;
/// Maximum digits in upstream's fast path.
const FAST_DIGITS: usize = 18;
/// Binary quantities are capped at the largest 64-bit integer.
const BINARY_CAP: u128 = i64::MAX as u128;

struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits_end = |s: &str| s.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(s.len());
    let (integer, rest) = rest.split_at(digits_end(rest));
    let integer = integer.trim_start_matches('0');
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits_end(after)),
        None => ("", rest),
    };
    let letters = suffix.bytes().position(|b| !b"eEinumkKMGTP".contains(&b)).unwrap_or(suffix.len());
    let exponent = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
    if exponent.bytes().any(|b| !b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts { negative, integer, fraction, suffix })
}

fn interpret(suffix: &str) -> Result<(bool, i64, Format), QuantityError> {
    let decimal = |e| Ok((false, e, Format::DecimalSi));
    let binary = |e| Ok((true, e, Format::BinarySi));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
            Ok((false, i64::from(exponent), Format::DecimalExponent))
        }
    }
}

impl Quantity {
    /// Parses a quantity as `resource.ParseQuantity` does.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = split(text)?;
        let (binary, exponent, format) = interpret(parts.suffix)?;
        let width = parts.integer.len().max(1) + parts.fraction.len();
        if binary {
            return Ok(Self::binary(text, &parts, exponent, width));
        }
        let mut digits: Vec<u8> =
            parts.integer.bytes().chain(parts.fraction.bytes()).map(|b| b - b'0').collect();
        let mut scale = exponent - parts.fraction.len() as i64;
        if scale < NANO {
            round_up(&mut digits, (NANO - scale).unsigned_abs());
            scale = NANO;
        }
        let looks_canonical = width <= FAST_DIGITS
            && exponent - parts.fraction.len() as i64 >= NANO
            && scale % 3 == 0
            && !parts.integer.is_empty()
            && !format!("{}{}", parts.integer, parts.fraction).ends_with("000");
        let kept = looks_canonical.then(|| text.to_owned());
        let mut out = Self { negative: parts.negative, digits, exponent: scale, format, kept };
        out.strip();
        Ok(out)
    }

    fn binary(text: &str, parts: &Parts<'_>, exponent: i64, width: usize) -> Self {
        let unit = 1u128 << exponent;
        let whole: Option<u128> = match parts.integer {
            "" => Some(0),
            digits if digits.len() <= 20 => digits.parse().ok(),
            _ => None,
        };
        let (kept_fraction, rest) = parts.fraction.split_at(parts.fraction.len().min(18));
        let sticky = rest.bytes().any(|b| b != b'0');
        let fraction: u128 = format!("{kept_fraction:0<18}").parse().unwrap_or(0);
        let nanos_of_fraction = (fraction * unit).div_ceil(1_000_000_000) + u128::from(sticky);
        let amount = whole.and_then(|w| w.checked_mul(unit)).filter(|w| *w < BINARY_CAP);
        let nanos = match amount {
            Some(whole) => (whole * 1_000_000_000 + nanos_of_fraction).min(BINARY_CAP * 1_000_000_000),
            None => BINARY_CAP * 1_000_000_000,
        };
        let fast = parts.fraction.is_empty() && whole.is_some() && {
            let spent = (exponent as f32 * 3.0 / 10.0) as usize + 1 + width;
            spent <= 15
        };
        let kept = (fast && whole.is_some_and(|w| w & 7 != 0)).then(|| text.to_owned());
        let format = if nanos < 1_000_000_000 { Format::DecimalSi } else { Format::BinarySi };
        let digits = nanos.to_string().bytes().map(|b| b - b'0').collect();
        let mut out = Self { negative: parts.negative, digits, exponent: NANO, format, kept };
        out.strip();
        out
    }

    pub fn from_integer(value: i64) -> Self {
        let digits = value.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect();
        let mut out =
            Self { negative: value < 0, digits, exponent: 0, format: Format::DecimalSi, kept: None };
        out.strip();
        out
    }

    fn strip(&mut self) {
        let leading = self.digits.iter().position(|d| *d != 0).unwrap_or(self.digits.len());
        self.digits.drain(..leading);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent += 1;
        }
        if self.digits.is_empty() {
            self.negative = false;
            self.exponent = 0;
        }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub fn is_negative(&self) -> bool {
        self.negative
    }

    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// In milli units, rounded away from zero; saturates.
    pub fn milli(&self) -> i64 {
        self.scaled(3)
    }

    /// In whole units, rounded away from zero; saturates.
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// Rounded away from zero to milli units; `None` if no rounding is needed.
    pub fn rounded_to_milli(&self) -> Option<Self> {
        const MILLI: i64 = -3;
        if self.exponent >= MILLI {
            return None;
        }
        let mut out = self.clone();
        round_up(&mut out.digits, (MILLI - self.exponent).unsigned_abs());
        out.exponent = MILLI;
        out.kept = None;
        out.strip();
        Some(out)
    }

    /// The sum, in the format of `self`, or of `other` if `self` is zero.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self::from_nanos(self.nanos().saturating_add(other.nanos()), format)
    }

    /// The difference, in the format of `self`, or of `other` if `self` is zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self::from_nanos(self.nanos().saturating_sub(other.nanos()), format)
    }

    /// In nano units; saturates.
    fn nanos(&self) -> i128 {
        let digits = self.digits.iter();
        let mut out =
            digits.fold(0_i128, |sum, digit| sum.saturating_mul(10).saturating_add(i128::from(*digit)));
        for _ in 0..(self.exponent - NANO).clamp(0, 40) {
            out = out.saturating_mul(10);
        }
        if self.negative { -out } else { out }
    }

    fn from_nanos(nanos: i128, format: Format) -> Self {
        let digits = nanos.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect();
        let mut out = Self { negative: nanos < 0, digits, exponent: NANO, format, kept: None };
        out.strip();
        out
    }

    fn scaled(&self, places: i64) -> i64 {
        let mut digits = self.digits.clone();
        let exponent = self.exponent + places;
        if exponent < 0 {
            round_up(&mut digits, exponent.unsigned_abs());
        }
        let mut out: i64 = 0;
        for digit in &digits {
            out = out.saturating_mul(10).saturating_add(i64::from(*digit));
        }
        for _ in 0..exponent.clamp(0, 20) {
            out = out.saturating_mul(10);
        }
        if self.negative { -out } else { out }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        let top = |q: &Self| q.digits.len() as i64 + q.exponent;
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => top(self).cmp(&top(other)).then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    fn below_1024(&self) -> bool {
        self.magnitude(&Self::from_integer(1024)) == Ordering::Less
    }
}

/// Drops the last `places` digits, rounding away from zero.
fn round_up(digits: &mut Vec<u8>, places: u64) {
    let places = usize::try_from(places).unwrap_or(usize::MAX).min(digits.len() + 1);
    let keep = digits.len().saturating_sub(places);
    let lost = digits[keep..].iter().any(|d| *d != 0);
    digits.truncate(keep);
    if lost {
        for digit in digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        digits.insert(0, 1);
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl fmt::Display for Quantity {
    /// The canonical text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kept) = &self.kept {
            return f.write_str(kept);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        if self.format == Format::BinarySi && self.is_integer() && !self.below_1024() {
            // Capped at 64 bits when parsed, so the number fits.
            let mut amount = self.value().unsigned_abs();
            let mut times = 0;
            while amount >= 1024 && amount.is_multiple_of(1024) {
                amount /= 1024;
                times += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(times).copied().unwrap_or("");
            return write!(f, "{amount}{suffix}");
        }
        for digit in &self.digits {
            write!(f, "{digit}")?;
        }
        let shift = self.exponent.rem_euclid(3);
        for _ in 0..shift {
            f.write_str("0")?;
        }
        let exponent = self.exponent - shift;
        match (self.format, exponent) {
            (_, 0) => Ok(()),
            (Format::DecimalExponent, e) => write!(f, "e{e}"),
            (_, e) => {
                let at = usize::try_from((e + 9) / 3).unwrap_or(usize::MAX);
                let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].get(at);
                f.write_str(suffix.copied().unwrap_or(""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_formatted_as_upstream() {
        for (given, wanted) in [
            ("0", "0"),
            ("0m", "0"),
            ("-0", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1000", "1k"),
            ("1001", "1001"),
            ("1024Ki", "1Mi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1023", "1023"),
            ("1Ki", "1Ki"),
            ("4Ki", "4Ki"),
            ("8Ki", "8Ki"),
            ("2e3", "2e3"),
            ("20e2", "2e3"),
            ("1E", "1E"),
            ("1E3", "1E3"),
            ("12E3", "12E3"),
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("-1.5", "-1500m"),
            ("+5", "+5"),
            ("005", "005"),
            ("16Ei", "9223372036854775807"),
            ("100000000000000000000", "100E"),
            ("0.5", "500m"),
            ("12345678901234567890", "12345678901234567890"),
            ("1.1Ki", "1126400m"),
        ] {
            assert_eq!(Quantity::parse(given).unwrap().to_string(), wanted, "{given}");
        }
    }

    #[test]
    fn malformed_quantities_are_rejected() {
        for (given, wanted) in [
            ("", QuantityError::Format),
            ("1x", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1KiB", QuantityError::Format),
            ("1K", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("abc", QuantityError::Format),
        ] {
            assert_eq!(Quantity::parse(given).unwrap_err(), wanted, "{given}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let q = |text| Quantity::parse(text).unwrap();
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1Gi") > q("1G"));
        assert!(q("-1") < q("1m"));
        assert!(q("9") < q("10"));
        assert_eq!(q("1500m").value(), 2);
        assert_eq!(q("2").milli(), 2000);
        assert_eq!(q("2Gi").value(), 2 << 30);
    }
}
