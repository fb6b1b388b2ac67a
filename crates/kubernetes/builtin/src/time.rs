//! `metav1.Time` and `metav1.MicroTime` as JSON strings, parsed with Go's strictness and error texts.

use jiff::civil;
use jiff::tz::Offset;

/// Go's layout of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `metav1.Time`: fractions are accepted and dropped.
    Seconds,
    /// `metav1.MicroTime`: exactly six fractional digits.
    Micros,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

/// Go's zero time, 0001-01-01T00:00:00Z, which is written as null.
pub const ZERO: Moment = Moment { seconds: -62_135_596_800, nanos: 0 };

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: Layout,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, element: &str) -> Result<T, String> {
        Err(format!(
            "parsing time {:?} as {:?}: cannot parse {:?} as {:?}",
            self.text,
            self.layout.text(),
            self.rest,
            element
        ))
    }

    fn number(&mut self, width: usize, element: &str) -> Result<i64, String> {
        match self.rest.get(..width).filter(|d| d.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => {
                self.rest = &self.rest[width..];
                Ok(digits.parse().unwrap_or_default())
            }
            None => self.fail(element),
        }
    }

    fn literal(&mut self, c: char) -> Result<(), String> {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.fail(&c.to_string()),
        }
    }

    fn in_range(&self, value: i64, range: std::ops::RangeInclusive<i64>, what: &str) -> Result<i64, String> {
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(format!("parsing time {:?}: {what} out of range", self.text))
        }
    }

    /// Fractional seconds, in nanoseconds.
    fn fraction(&mut self) -> Result<u32, String> {
        let digits = self
            .rest
            .strip_prefix(['.', ','])
            .map_or(0, |d| d.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(d.len()));
        let wanted = match self.layout {
            Layout::Micros if digits != 6 => return self.fail(".000000"),
            _ => digits,
        };
        if wanted == 0 {
            return Ok(0);
        }
        let kept: String = self.rest[1..=wanted].chars().chain("000000000".chars()).take(9).collect();
        self.rest = &self.rest[wanted + 1..];
        Ok(kept.parse().unwrap_or_default())
    }

    fn offset(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let sign = match self.rest.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return self.fail("Z07:00"),
        };
        let field = |range: std::ops::Range<usize>| {
            self.rest.get(range).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?.parse::<i64>().ok()
        };
        match (field(1..3), self.rest.get(3..4), field(4..6)) {
            (Some(h), Some(":"), Some(m)) => {
                let h = self.in_range(h, 0..=24, "time zone offset hour")?;
                let m = self.in_range(m, 0..=60, "time zone offset minute")?;
                self.rest = &self.rest[6..];
                Ok(sign * (h * 3600 + m * 60))
            }
            _ => self.fail("Z07:00"),
        }
    }
}

/// Parses a time; the error is Go's text.
pub fn parse(text: &str, layout: Layout) -> Result<Moment, String> {
    let mut r = Reader { text, rest: text, layout };
    let year = r.number(4, "2006")?;
    r.literal('-')?;
    let month = r.number(2, "01")?;
    r.in_range(month, 1..=12, "month")?;
    r.literal('-')?;
    let day = r.number(2, "02")?;
    r.literal('T')?;
    let hour = r.number(2, "15")?;
    r.in_range(hour, 0..=23, "hour")?;
    r.literal(':')?;
    let minute = r.number(2, "04")?;
    r.in_range(minute, 0..=59, "minute")?;
    r.literal(':')?;
    let second = r.number(2, "05")?;
    r.in_range(second, 0..=59, "second")?;
    let nanos = r.fraction()?;
    let offset = r.offset()?;
    if !r.rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {:?}", r.rest));
    }
    let date = civil::Date::new(year as i16, month as i8, day as i8)
        .map_err(|_| format!("parsing time {text:?}: day out of range"))?;
    let days =
        date.since((jiff::Unit::Day, civil::date(1970, 1, 1))).map_or(0, |span| i64::from(span.get_days()));
    Ok(Moment { seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanos })
}

/// Formats a time in UTC, as Go does; `None` outside of years 0 to 9999.
pub fn format(moment: Moment, layout: Layout) -> Option<String> {
    let at = jiff::Timestamp::new(moment.seconds, i32::try_from(moment.nanos).ok()?).ok()?;
    let civil = Offset::UTC.to_datetime(at);
    if civil.year() < 0 {
        return None;
    }
    let date = format!("{:04}-{:02}-{:02}", civil.year(), civil.month(), civil.day());
    let clock = format!("{:02}:{:02}:{:02}", civil.hour(), civil.minute(), civil.second());
    Some(match layout {
        Layout::Seconds => format!("{date}T{clock}Z"),
        Layout::Micros => format!("{date}T{clock}.{:06}Z", moment.nanos / 1000),
    })
}

/// The text as Kubernetes writes it, `None` for the zero time, which is null.
pub fn canonical(text: &str, layout: Layout) -> Result<Option<String>, String> {
    let moment = parse(text, layout)?;
    if moment == ZERO || layout == Layout::Seconds && moment.seconds == ZERO.seconds {
        return Ok(None);
    }
    format(moment, layout)
        .map(Some)
        .ok_or_else(|| format!("Time.MarshalJSON: year outside of range [0,9999]: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_without_fractions() {
        for (given, wanted) in [
            ("2024-02-29T12:00:00Z", Some("2024-02-29T12:00:00Z")),
            ("2024-02-29T12:00:00.987654321Z", Some("2024-02-29T12:00:00Z")),
            ("2024-02-29T12:00:00+02:00", Some("2024-02-29T10:00:00Z")),
            ("0001-01-01T00:00:00Z", None),
            ("1960-01-01T00:00:00Z", Some("1960-01-01T00:00:00Z")),
        ] {
            assert_eq!(canonical(given, Layout::Seconds).unwrap().as_deref(), wanted, "{given}");
        }
        assert_eq!(
            canonical("2024-02-29T12:00:00.120000+01:00", Layout::Micros).unwrap().as_deref(),
            Some("2024-02-29T11:00:00.120000Z")
        );
    }

    #[test]
    fn malformed_times_have_gos_errors() {
        for (given, layout, wanted) in [
            (
                "x",
                Layout::Seconds,
                r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
            ),
            (
                "2024-13-01T00:00:00Z",
                Layout::Seconds,
                r#"parsing time "2024-13-01T00:00:00Z": month out of range"#,
            ),
            (
                "2024-02-30T00:00:00Z",
                Layout::Seconds,
                r#"parsing time "2024-02-30T00:00:00Z": day out of range"#,
            ),
            (
                "2024-02-29T12:00:00Z",
                Layout::Micros,
                r#"parsing time "2024-02-29T12:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
            ),
            (
                "2024-02-29T12:00:00",
                Layout::Seconds,
                r#"parsing time "2024-02-29T12:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
        ] {
            assert_eq!(parse(given, layout).unwrap_err(), wanted);
        }
    }
}
