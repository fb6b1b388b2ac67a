//! RFC 3339 timestamps as Go's `time.Parse` accepts them, with Go's errors.

use capstan_cel::rfc3339::{self, Problem, civil_from_days};

use crate::golang::quote;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Seconds since the epoch and nanoseconds of a timestamp, or Go's error text.
pub fn parse_rfc3339(text: &str) -> Result<(i64, u32), String> {
    match rfc3339::parse(text) {
        Ok(moment) => Ok((moment.seconds, moment.nanos)),
        Err(Problem::Unreadable { rest, element }) => Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(text),
            quote(LAYOUT),
            quote(rest),
            quote(element)
        )),
        Err(Problem::OutOfRange(what)) => Err(format!("parsing time {}: {what} out of range", quote(text))),
        Err(Problem::Extra(rest)) => {
            Err(format!("parsing time {}: extra text: {}", quote(text), quote(rest)))
        }
    }
}

/// Seconds since the epoch as `2006-01-02T15:04:05Z`.
pub fn format_rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
    fn errors_have_gos_texts() {
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
