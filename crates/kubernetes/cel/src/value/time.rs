//! Timestamps and durations with Go's text forms.

use std::cmp::Ordering;

use crate::rfc3339::{self, Moment, civil_from_days, days_from_civil};

pub(crate) const MIN_UNIX_TIME: i64 = -62_135_596_800;
pub(crate) const MAX_UNIX_TIME: i64 = 253_402_300_799;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// An instant with its UTC offset, which only its text form shows.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    pub(crate) offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// The parts of a local date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12
    pub(crate) month: i64,
    /// 1 to 31
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// 0 is Sunday
    pub(crate) weekday: i64,
    /// 0 is the first of January
    pub(crate) day_of_year: i64,
}

impl Timestamp {
    /// Seconds since the epoch, in UTC.
    pub(crate) fn from_unix(seconds: i64) -> Self {
        Self { seconds, nanos: 0, offset: 0 }
    }

    pub(crate) fn in_range(&self) -> bool {
        (MIN_UNIX_TIME..=MAX_UNIX_TIME).contains(&self.seconds)
    }

    /// Go's zero time, January 1 of the year one.
    pub(crate) fn is_zero(&self) -> bool {
        self.seconds == MIN_UNIX_TIME && self.nanos == 0
    }

    pub(crate) fn civil(&self, offset: i64) -> Civil {
        let local = self.seconds.saturating_add(offset);
        let days = local.div_euclid(86_400);
        let rest = local.rem_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_from_civil(year, 1, 1),
        }
    }

    /// RFC 3339 with as many fractional digits as needed, in its own offset.
    pub(crate) fn to_rfc3339(self) -> String {
        let civil = self.civil(i64::from(self.offset));
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
        );
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(fraction.trim_end_matches('0'));
        }
        text.push_str(&zone(self.offset, ":", "Z"));
        text
    }

    /// Go's `time.Time.String`.
    pub(crate) fn to_go_string(self) -> String {
        let rfc = self.to_rfc3339();
        let end = rfc[19..].find(['Z', '+', '-']).map_or(rfc.len(), |i| 19 + i);
        let local = zone(self.offset, "", "+0000");
        let name = if self.offset == 0 { "UTC" } else { &local };
        format!("{} {local} {name}", rfc[..end].replacen('T', " ", 1))
    }

    /// The instant `nanos` later; `None` outside the years 1 to 9999.
    pub(crate) fn checked_add(self, nanos: i64) -> Option<Self> {
        let total = i64::from(self.nanos) + nanos.rem_euclid(NANOS_PER_SECOND);
        let seconds = self
            .seconds
            .checked_add(nanos.div_euclid(NANOS_PER_SECOND))?
            .checked_add(total / NANOS_PER_SECOND)?;
        let sum = Self { seconds, nanos: (total % NANOS_PER_SECOND) as u32, offset: self.offset };
        sum.in_range().then_some(sum)
    }

    /// Nanoseconds from `other` to this.
    pub(crate) fn checked_sub(&self, other: &Self) -> Option<i64> {
        self.seconds
            .checked_sub(other.seconds)?
            .checked_mul(NANOS_PER_SECOND)?
            .checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }
}

fn zone(offset: i32, separator: &str, utc: &str) -> String {
    if offset == 0 {
        return utc.to_owned();
    }
    let minutes = offset.abs() / 60;
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
}

/// RFC 3339 as Go's `time.Parse` accepts it.
pub(crate) fn parse_rfc3339(s: &str) -> Option<Timestamp> {
    let Moment { seconds, nanos, offset } = rfc3339::parse(s).ok()?;
    Some(Timestamp { seconds, nanos, offset })
}

/// OpenAPI's `date-time` as Kubernetes reads it: RFC 3339, or the same without a zone.
pub(crate) fn parse_date_time(s: &str) -> Result<Timestamp, String> {
    if s.is_empty() {
        return Ok(Timestamp::from_unix(0));
    }
    parse_rfc3339(s)
        .or_else(|| parse_rfc3339(&format!("{s}Z")))
        .ok_or_else(|| format!("parsing time {s:?} as \"2006-01-02T15:04:05\": cannot parse {s:?}"))
}

/// OpenAPI's `date`.
pub(crate) fn parse_date(s: &str) -> Result<Timestamp, String> {
    let midnight = (s.len() == 10).then(|| parse_rfc3339(&format!("{s}T00:00:00Z"))).flatten();
    midnight.ok_or_else(|| format!("parsing time {s:?} as \"2006-01-02\": cannot parse {s:?}"))
}

/// Go's `time.ParseDuration`, in nanoseconds.
pub(crate) fn parse_duration(s: &str) -> Option<i64> {
    let (negative, mut rest) = match s.as_bytes().first()? {
        b'-' => (true, &s[1..]),
        b'+' => (false, &s[1..]),
        _ => (false, s),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole_len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole: u64 = if whole_len == 0 { 0 } else { rest[..whole_len].parse().ok()? };
        if whole > 1 << 63 {
            return None;
        }
        rest = &rest[whole_len..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let len = after.bytes().take_while(u8::is_ascii_digit).count();
            fraction = &after[..len];
            rest = &after[len..];
        }
        if whole_len == 0 && fraction.is_empty() {
            return None;
        }
        let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit: u64 = match &rest[..unit_len] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[unit_len..];
        let mut value = whole.checked_mul(unit).filter(|value| *value <= 1 << 63)?;
        if !fraction.is_empty() {
            // Excess digits are dropped, as in Go.
            let (mut scaled, mut scale) = (0u64, 1.0f64);
            for digit in fraction.bytes() {
                match scaled.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) {
                    Some(next) if next <= 1 << 63 => {
                        scaled = next;
                        scale *= 10.0;
                    }
                    _ => break,
                }
            }
            value += (scaled as f64 * (unit as f64 / scale)) as u64;
            if value > 1 << 63 {
                return None;
            }
        }
        total = total.checked_add(value).filter(|total| *total <= 1 << 63)?;
    }
    if negative {
        return Some((total as i64).wrapping_neg());
    }
    i64::try_from(total).ok()
}

/// OpenAPI's `duration`: Go's form, or numbers with unit words (`3 days 2 hours`).
pub(crate) fn parse_openapi_duration(s: &str) -> Result<i64, String> {
    if let Some(nanos) = parse_duration(s) {
        return Ok(nanos);
    }
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], NANOS_PER_SECOND),
        (&["m", "min"], 60 * NANOS_PER_SECOND),
        (&["h", "hr", "hour"], 3_600 * NANOS_PER_SECOND),
        (&["d", "day"], 86_400 * NANOS_PER_SECOND),
        (&["w", "wk", "week"], 7 * 86_400 * NANOS_PER_SECOND),
    ];
    let mut total = 0i64;
    let mut found = false;
    let mut rest = s;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[..len];
        let after = rest[len..].trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let unit_len = after.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(after.len());
        rest = after;
        if unit_len == 0 {
            continue;
        }
        let factor: i64 =
            digits.parse().map_err(|_| format!("strconv.Atoi: parsing {digits:?}: value out of range"))?;
        let unit = after[..unit_len].to_lowercase();
        rest = &after[unit_len..];
        for (variants, multiplier) in UNITS {
            let matches = variants.iter().enumerate().any(|(i, variant)| {
                unit == *variant || (i + 1 == variants.len() && unit.starts_with(variant))
            });
            if matches {
                found = true;
                total = total.wrapping_add(factor.wrapping_mul(multiplier));
            }
        }
    }
    if found { Ok(total) } else { Err(format!("unable to parse {s} as duration")) }
}

/// A duration as CEL's `string()` formats it: decimal seconds.
pub(crate) fn format_seconds(nanos: i64) -> String {
    let seconds = (nanos / NANOS_PER_SECOND) as f64 + (nanos % NANOS_PER_SECOND) as f64 / 1e9;
    format!("{seconds}s")
}

/// Go's `time.Duration.String`.
pub(crate) fn format_go_duration(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let abs = nanos.unsigned_abs();
    let fraction = |value: u64, unit: u64| {
        let digits = format!("{:0width$}", value % unit, width = unit.ilog10() as usize);
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() { format!("{}", value / unit) } else { format!("{}.{digits}", value / unit) }
    };
    if abs < 1_000 {
        return format!("{sign}{abs}ns");
    }
    if abs < 1_000_000 {
        return format!("{sign}{}µs", fraction(abs, 1_000));
    }
    if abs < 1_000_000_000 {
        return format!("{sign}{}ms", fraction(abs, 1_000_000));
    }
    let minutes = abs / 60_000_000_000;
    let seconds = fraction(abs % 60_000_000_000, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_and_print_as_go_does() {
        let table = [
            ("2023-01-14T10:30:45.123Z", Some("2023-01-14T10:30:45.123Z")),
            ("2023-01-14T10:30:45+02:00", Some("2023-01-14T10:30:45+02:00")),
            ("2023-01-14T1:30:45Z", Some("2023-01-14T01:30:45Z")),
            ("2023-02-30T10:30:45Z", None),
            ("2023-01-14T10:30:45", None),
            ("2023-01-14 10:30:45Z", None),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
        ];
        for (text, printed) in table {
            assert_eq!(parse_rfc3339(text).map(Timestamp::to_rfc3339).as_deref(), printed, "{text}");
        }
    }

    #[test]
    fn durations_read_and_print_as_go_does() {
        let table = [
            ("1h30m", Some("1h30m0s")),
            ("1.5s", Some("1.5s")),
            ("-2ms", Some("-2ms")),
            ("300us", Some("300µs")),
            ("0", Some("0s")),
            (".5h", Some("30m0s")),
            ("1", None),
            ("", None),
            ("9223372036854775807ns", Some("2562047h47m16.854775807s")),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some("-2562047h47m16.854775808s")),
        ];
        for (text, printed) in table {
            assert_eq!(parse_duration(text).map(format_go_duration).as_deref(), printed, "{text}");
        }
        assert_eq!(parse_openapi_duration("3 days"), Ok(3 * 86_400 * NANOS_PER_SECOND));
        assert_eq!(format_seconds(parse_duration("1h30m").unwrap()), "5400s");
    }
}
