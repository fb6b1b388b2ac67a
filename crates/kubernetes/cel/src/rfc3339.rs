//! RFC 3339 timestamps as Go's `time.Parse` accepts them, and calendar arithmetic.
//!
//! An hour of one digit and a comma before the fraction are accepted, as in Go.

/// An instant and its UTC offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset: i32,
}

/// Why a timestamp is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem<'a> {
    /// The rest does not match the expected element.
    Unreadable {
        /// The text from the error on.
        rest: &'a str,
        /// The expected element, in the notation of Go's layouts.
        element: &'static str,
    },
    /// The named element is out of range.
    OutOfRange(&'static str),
    /// Text follows the timestamp.
    Extra(&'a str),
}

/// Parses a timestamp. The whole text must match.
pub fn parse(text: &str) -> Result<Moment, Problem<'_>> {
    let mut parser = Parser { rest: text };
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
        return Err(Problem::Extra(parser.rest));
    }
    let (month, day) = (i64::from(month), i64::from(day));
    if day > days_in_month(year, month) {
        return Err(Problem::OutOfRange("day"));
    }
    let time = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let seconds = days_from_civil(year, month, day) * 86_400 + time - i64::from(offset);
    Ok(Moment { seconds, nanos, offset })
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn unreadable(&self, element: &'static str) -> Problem<'a> {
        Problem::Unreadable { rest: self.rest, element }
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Problem<'a>> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.unreadable(literal))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<u32, Problem<'a>> {
        let digits = self.rest.get(..count).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let number = digits.and_then(|d| d.parse().ok()).ok_or_else(|| self.unreadable(element))?;
        self.rest = &self.rest[count..];
        Ok(number)
    }

    fn ranged(
        &mut self,
        range: std::ops::RangeInclusive<u32>,
        element: &'static str,
        what: &'static str,
    ) -> Result<u32, Problem<'a>> {
        let number = self.digits(2, element)?;
        if range.contains(&number) { Ok(number) } else { Err(Problem::OutOfRange(what)) }
    }

    fn hour(&mut self) -> Result<u32, Problem<'a>> {
        let two = self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        let hour = self.digits(if two { 2 } else { 1 }, "15")?;
        if hour < 24 { Ok(hour) } else { Err(Problem::OutOfRange("hour")) }
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

    fn zone(&mut self) -> Result<i32, Problem<'a>> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = self.rest.as_bytes();
        let two = |i: usize| match (bytes.get(i), bytes.get(i + 1)) {
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                Some(i32::from(a - b'0') * 10 + i32::from(b - b'0'))
            }
            _ => None,
        };
        let sign = match bytes.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.unreadable(ELEMENT)),
        };
        let (Some(hours), Some(b':'), Some(minutes)) = (two(1), bytes.get(3), two(4)) else {
            return Err(self.unreadable(ELEMENT));
        };
        if hours > 24 {
            return Err(Problem::OutOfRange("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Problem::OutOfRange("time zone offset minute"));
        }
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a day since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
