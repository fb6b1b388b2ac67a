//! Durations and times in tables.

use jiff::Timestamp;
use serde_json::Value;

/// `duration.HumanDuration`: two or three significant figures. Tolerates a clock skew of a second.
pub fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |whole: i64, unit: char, rest: i64, rest_unit: char| match rest {
        0 => format!("{whole}{unit}"),
        _ => format!("{whole}{unit}{rest}{rest_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(days, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

/// Time between two timestamps, in whole seconds rounded towards zero.
pub fn between(from: Timestamp, to: Timestamp) -> String {
    let seconds = (to.as_nanosecond() - from.as_nanosecond()) / 1_000_000_000;
    duration(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// Time since an RFC 3339 timestamp; `<unknown>` without one.
pub fn since(time: &Value, now: Timestamp) -> String {
    parse(time).map_or_else(|| "<unknown>".into(), |then| between(then, now))
}

/// Parses an RFC 3339 timestamp.
pub fn parse(time: &Value) -> Option<Timestamp> {
    time.as_str().and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_significant_figures() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        const YEAR: i64 = 365 * DAY;
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (135, "2m15s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR, "8y"),
            (20 * YEAR, "20y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_missing_time_is_unknown() {
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(since(&Value::Null, now), "<unknown>");
        assert_eq!(since(&"2026-01-01T00:00:00Z".into(), now), "5m");
        assert_eq!(since(&"2026-01-01T00:00:00.123456Z".into(), now), "4m59s");
    }
}
