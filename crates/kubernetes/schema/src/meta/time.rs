//! RFC 3339 time stamps as Go's `time.Parse` reads them, errors included.

use crate::golang::quote;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Seconds since the epoch and nanoseconds of a time stamp, or Go's words for what is wrong.
pub fn parse_rfc3339(text: &str) -> Result<(i64, u32), String> {
    let mut parser = Parser { text, rest: text };
    let year = i64::from(parser.digits(4, "2006")?);
    parser.literal("-")?;
    let month = parser.ranged(1..=12, "01", "month")?;
    parser.literal("-")?;
    let day = parser.ranged(1..=31, "02", "day")?;
    parser.literal("T")?;
    let hour = parser.hour()?;
    parser.literal(":")?;
    let minute = parser.ranged(0..=59, "04", "minute")?;
    parser.literal(":")?;
    let second = parser.ranged(0..=59, "05", "second")?;
    let nanos = parser.fraction();
    let offset = parser.zone()?;
    if !parser.rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text), quote(parser.rest)));
    }
    if day > days_in(year, month) {
        return Err(parser.out_of_range("day"));
    }
    let days = days_from_civil(year, month, day);
    let seconds =
        days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second) - offset;
    Ok((seconds, nanos))
}

/// Seconds since the epoch as `2006-01-02T15:04:05Z`.
pub fn format_rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn cannot_parse(&self, element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.text),
            quote(LAYOUT),
            quote(self.rest),
            quote(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quote(self.text))
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.cannot_parse(literal))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<u32, String> {
        let digits = self.rest.get(..count).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let number = digits.and_then(|d| d.parse().ok()).ok_or_else(|| self.cannot_parse(element))?;
        self.rest = &self.rest[count..];
        Ok(number)
    }

    fn ranged(
        &mut self,
        range: std::ops::RangeInclusive<u32>,
        element: &str,
        what: &str,
    ) -> Result<u32, String> {
        let number = self.digits(2, element)?;
        if range.contains(&number) { Ok(number) } else { Err(self.out_of_range(what)) }
    }

    /// Go takes an hour of one digit.
    fn hour(&mut self) -> Result<u32, String> {
        let bytes = self.rest.as_bytes();
        let two = bytes.get(1).is_some_and(u8::is_ascii_digit);
        let hour = self.digits(if two { 2 } else { 1 }, "15")?;
        if hour < 24 { Ok(hour) } else { Err(self.out_of_range("hour")) }
    }

    fn fraction(&mut self) -> u32 {
        let bytes = self.rest.as_bytes();
        let has_digit = bytes.get(1).is_some_and(u8::is_ascii_digit);
        if !(has_digit && matches!(bytes.first(), Some(b'.' | b','))) {
            return 0;
        }
        let digits = self.rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        let nanos = self.rest[1..=digits]
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |nanos, b| nanos * 10 + u32::from(b - b'0'));
        self.rest = &self.rest[1 + digits..];
        nanos
    }

    fn zone(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = self.rest.as_bytes();
        let two = |i: usize| match (bytes.get(i), bytes.get(i + 1)) {
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                Some(i64::from(a - b'0') * 10 + i64::from(b - b'0'))
            }
            _ => None,
        };
        let sign = match bytes.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.cannot_parse(ELEMENT)),
        };
        let (Some(hours), Some(b':'), Some(minutes)) = (two(1), bytes.get(3), two(4)) else {
            return Err(self.cannot_parse(ELEMENT));
        };
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_survive_a_round_trip() {
        for text in
            ["1970-01-01T00:00:00Z", "2026-11-15T12:34:56Z", "2000-02-29T23:59:59Z", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(format_rfc3339(parse_rfc3339(text).expect(text).0), text);
        }
        assert_eq!(parse_rfc3339("1970-01-01T01:00:00.5+01:00"), Ok((0, 500_000_000)));
        assert_eq!(parse_rfc3339("1970-01-01T1:00:00Z"), Ok((3600, 0)));
    }

    #[test]
    fn errors_read_as_go_words_them() {
        for (text, error) in [
            ("x", r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
            ("2020-13-01T00:00:00Z", r#"parsing time "2020-13-01T00:00:00Z": month out of range"#),
            ("2020-02-30T00:00:00Z", r#"parsing time "2020-02-30T00:00:00Z": day out of range"#),
            (
                "2020-01-01",
                r#"parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            ("2020-01-01T00:00:00Zx", r#"parsing time "2020-01-01T00:00:00Zx": extra text: "x""#),
        ] {
            assert_eq!(parse_rfc3339(text).expect_err(text), error);
        }
    }
}
