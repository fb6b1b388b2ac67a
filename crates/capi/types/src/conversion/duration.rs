//! Durations: text in v1beta1, seconds in v1beta2.

/// Seconds of a Go duration such as `1h2m3.5s`; fractions are truncated.
pub fn to_seconds(text: &str) -> Option<i32> {
    if text == "0" {
        return Some(0);
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        seconds += number
            * match unit {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" | "μs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = tail;
    }
    let seconds = seconds.min(f64::from(i32::MAX)).trunc();
    // In range of i32 by the line above.
    Some(if negative { -(seconds as i32) } else { seconds as i32 })
}

/// Formats a Go duration.
pub(super) fn from_seconds(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_formatted_as_in_go() {
        for (text, seconds, canonical) in [
            ("10m0s", 600, "10m0s"),
            ("1h", 3600, "1h0m0s"),
            ("1h2m3.9s", 3723, "1h2m3s"),
            ("1500ms", 1, "1s"),
            ("0", 0, "0s"),
            ("-90s", -90, "-1m30s"),
        ] {
            assert_eq!(to_seconds(text), Some(seconds), "{text}");
            assert_eq!(from_seconds(seconds.into()), canonical);
        }
        for text in ["", "5", "m", "5x", "-"] {
            assert_eq!(to_seconds(text), None, "{text}");
        }
    }
}
