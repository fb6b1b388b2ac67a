//! Durations as Go writes them.

use jiff::SignedDuration;

/// `1h30m0s`, `500ms`.
pub(in super::super) fn go_duration(text: &str) -> Option<SignedDuration> {
    const UNITS: [(&str, i64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut total = 0i64;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (_, scale) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        total = total.checked_add(number.checked_mul(*scale)?)?;
        rest = &rest[end..];
    }
    Some(SignedDuration::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, seconds) in [
            ("1h30m0s", Some(5400)),
            ("5m0s", Some(300)),
            ("0", Some(0)),
            ("5", None),
            ("", None),
            ("1x", None),
        ] {
            assert_eq!(go_duration(text).map(|duration| duration.as_secs()), seconds, "{text}");
        }
        assert_eq!(go_duration("99999999999h"), None);
    }
}
