//! Validation of cron schedules, with the errors of upstream's library.

struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    Field { min: 0, max: 59, names: &[] },
    Field { min: 0, max: 23, names: &[] },
    Field { min: 1, max: 31, names: &[] },
    Field { min: 1, max: 12, names: &MONTHS },
    Field { min: 0, max: 6, names: &DAYS },
];

/// The error of a schedule.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let mut rest = schedule;
    if let Some(zoned) = rest.strip_prefix("TZ=").or_else(|| rest.strip_prefix("CRON_TZ=")) {
        rest = zoned.split_once(' ').map_or("", |(_, after)| after).trim();
    }
    if let Some(word) = rest.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        return if let Some(duration) = word.strip_prefix("every ") {
            duration_problem(duration).map(|why| format!("failed to parse duration {rest}: time: {why}"))
        } else if known.contains(&word) {
            None
        } else {
            Some(format!("unrecognized descriptor: {rest}"))
        };
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Some(
            format!("expected exactly 5 fields, found {}: {:?}", parts.len(), parts).replace(", \"", " \""),
        )
        .map(|text| text.replace('"', ""));
    }
    parts
        .iter()
        .zip(&FIELDS)
        .find_map(|(part, field)| part.split(',').find_map(|range| range_problem(range, field)))
}

/// The error of a duration, with the text of Go's standard library.
fn duration_problem(text: &str) -> Option<String> {
    let invalid = || Some(format!("invalid duration {text:?}"));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        let has_digit = digits.bytes().any(|b| b.is_ascii_digit());
        if !has_digit || digits.bytes().filter(|b| *b == b'.').count() > 1 {
            return invalid();
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        match unit {
            "" => return Some(format!("missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            unknown => return Some(format!("unknown unit {unknown:?} in duration {text:?}")),
        }
        rest = next;
    }
    None
}

fn range_problem(text: &str, field: &Field) -> Option<String> {
    let (range, step) = match text.split_once('/') {
        Some((_, step)) if step.contains('/') => return Some(format!("too many slashes: {text}")),
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let (low, high) = if range == "*" || range == "?" {
        (field.min, field.max)
    } else {
        let mut bounds = range.splitn(3, '-');
        let (low, high, more) = (bounds.next().unwrap_or_default(), bounds.next(), bounds.next());
        if more.is_some() {
            return Some(format!("too many hyphens: {text}"));
        }
        let low = match number(low, field) {
            Ok(low) => low,
            Err(problem) => return Some(problem),
        };
        let high = match high.map(|h| number(h, field)) {
            None if step.is_some() => field.max,
            None => low,
            Some(Ok(high)) => high,
            Some(Err(problem)) => return Some(problem),
        };
        (low, high)
    };
    if let Some(step) = step {
        match step.parse::<u32>() {
            Ok(0) => return Some(format!("step of range should be a positive number: {text}")),
            Ok(_) => {}
            Err(_) => {
                return Some(format!(
                    "failed to parse int from {step}: strconv.Atoi: parsing {step:?}: invalid syntax"
                ));
            }
        }
    }
    if low < field.min {
        return Some(format!("beginning of range ({low}) below minimum ({}): {text}", field.min));
    }
    if high > field.max {
        return Some(format!("end of range ({high}) above maximum ({}): {text}", field.max));
    }
    (low > high).then(|| format!("beginning of range ({low}) beyond end of range ({high}): {text}"))
}

fn number(text: &str, field: &Field) -> Result<u32, String> {
    if let Some(at) = field.names.iter().position(|n| n.eq_ignore_ascii_case(text)) {
        return Ok(at as u32 + field.min);
    }
    text.parse::<u32>().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}
