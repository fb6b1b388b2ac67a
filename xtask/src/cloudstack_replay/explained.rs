//! Differences that are understood.

/// Beginning of a case's name (empty for all), a part of the difference, and why it is as it is.
const EXPLAINED: &[(&str, &str, &str)] = &[];

/// Why a difference is expected.
pub fn reason(case: &str, difference: &str) -> Option<&'static str> {
    EXPLAINED
        .iter()
        .find(|(start, part, _)| case.starts_with(start) && difference.contains(part))
        .map(|(_, _, why)| *why)
}
