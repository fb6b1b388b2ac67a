//! What a Job does about failed and succeeded Pods.

use std::collections::BTreeSet;

use capstan_schema::field::{BadValue, ErrorKind, FieldError};
use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Value, json};

use super::report::{Report, get, int, list, maybe_int, text};

const MAX_RULES: usize = 20;
const MAX_PATTERNS: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_INDEXES: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Required, and one of a sorted set.
fn required_one_of(path: Path<'_>, value: &str, supported: &[&str], report: &mut Report) {
    if value.is_empty() {
        let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        report.required(path, format!("valid values: [{}]", quoted.join(" ")));
    } else {
        report.one_of(path, value, supported);
    }
}

/// An invalid value that the message does not show.
pub(super) fn invalid_unshown(path: Path<'_>, detail: &str, report: &mut Report) {
    report.errors.push(FieldError::new(ErrorKind::Invalid, path, BadValue::Omitted, detail));
}

pub(super) fn failure_policy(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let rules = list(&spec["podFailurePolicy"], "rules");
    let field = path.field("rules");
    if rules.len() > MAX_RULES {
        report.too_many(field, rules.len(), MAX_RULES);
    }
    let template = &spec["template"]["spec"];
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|key| list(template, key))
        .map(|container| text(container, "name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let path = field.index(index);
        let action = text(rule, "action");
        if action == "FailIndex" && get(spec, "backoffLimitPerIndex").is_none() {
            let detail = "requires the backoffLimitPerIndex to be set";
            report.invalid(path.field("action"), action, detail);
        }
        required_one_of(path.field("action"), action, &ACTIONS, report);
        let codes = get(rule, "onExitCodes");
        let conditions = list(rule, "onPodConditions");
        if let Some(codes) = codes {
            exit_codes(codes, &containers, &path.field("onExitCodes"), report);
        }
        pod_conditions(conditions, &path.field("onPodConditions"), report);
        match (codes.is_some(), !conditions.is_empty()) {
            (true, true) => {
                let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
                invalid_unshown(path, detail, report);
            }
            (false, false) => {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                invalid_unshown(path, detail, report);
            }
            _ => {}
        }
    }
}

fn pod_conditions(patterns: &[Value], path: &Path<'_>, report: &mut Report) {
    if patterns.len() > MAX_PATTERNS {
        report.too_many(*path, patterns.len(), MAX_PATTERNS);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        let kind = text(pattern, "type");
        report.each(path.field("type"), kind, meta::qualified_name(kind));
        required_one_of(path.field("status"), text(pattern, "status"), &STATUSES, report);
    }
}

fn exit_codes(codes: &Value, containers: &BTreeSet<&str>, path: &Path<'_>, report: &mut Report) {
    let operator = text(codes, "operator");
    required_one_of(path.field("operator"), operator, &OPERATORS, report);
    if let Some(name) = get(codes, "containerName").and_then(Value::as_str)
        && !containers.contains(name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        report.invalid(path.field("containerName"), name, detail);
    }
    let values = list(codes, "values");
    let field = path.field("values");
    if values.is_empty() {
        report.invalid(field, json!([]), "at least one value is required");
    } else if values.len() > MAX_EXIT_CODES {
        report.too_many(field, values.len(), MAX_EXIT_CODES);
    }
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    let mut seen = BTreeSet::new();
    for (index, number) in numbers.iter().enumerate() {
        if operator == "In" && *number == 0 {
            report.invalid(field.index(index), 0, "must not be 0 for the In operator");
        }
        if !seen.insert(*number) {
            report.duplicate(field.index(index), *number);
        }
    }
    if !numbers.is_sorted() {
        report.invalid(field, json!(values), "must be ordered");
    }
}

pub(super) fn success_policy(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let rules = list(&spec["successPolicy"], "rules");
    let field = path.field("rules");
    if rules.is_empty() {
        report.required(field, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > MAX_RULES {
        report.too_many(field, rules.len(), MAX_RULES);
    }
    // Required of an indexed Job, which is reported elsewhere.
    let completions = int(spec, "completions");
    for (index, rule) in rules.iter().enumerate() {
        let path = field.index(index);
        let (count, indexes) =
            (maybe_int(rule, "succeededCount"), get(rule, "succeededIndexes").and_then(Value::as_str));
        if count.is_none() && indexes.is_none() {
            report.required(path, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if let Some(indexes) = indexes {
            let path = path.field("succeededIndexes");
            if indexes.len() > MAX_INDEXES {
                report.too_long(path, MAX_INDEXES);
            }
            match index_count(indexes, completions) {
                Ok(found) => total = found,
                Err(why) => {
                    report.invalid(path, indexes, format!("error parsing succeededIndexes: {why}"));
                }
            }
        }
        let Some(count) = count else { continue };
        let path = path.field("succeededCount");
        report.not_negative(path, count);
        if count > completions {
            let detail =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            report.invalid(path, count, detail);
        }
        if indexes.is_some() && count > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            report.invalid(path, count, detail);
        }
    }
}

/// The number of indexes in a text like `0,2-4`, all of them below `completions`.
pub(super) fn index_count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    if text.is_empty() {
        return Ok(total);
    }
    let mut last: Option<i64> = None;
    for interval in text.split(',') {
        let (first, end) = index_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

pub(super) fn index_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = interval.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can have at most two \
             parts separated by '-'"
        ));
    }
    let number = |limit: &str| {
        let number: i64 =
            limit.parse().map_err(|_| format!("cannot convert string to integer for index: {limit:?}"))?;
        if number >= completions { Err(format!("too large index: {limit:?}")) } else { Ok(number) }
    };
    let first = number(limits[0])?;
    let Some(end) = limits.get(1) else { return Ok((first, first)) };
    let end = number(end)?;
    if first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

pub(super) fn replacement_policy(spec: &Value, path: Path<'_>, report: &mut Report) {
    let Some(policy) = get(spec, "podReplacementPolicy").and_then(Value::as_str) else { return };
    let supported: &[&str] = if get(spec, "podFailurePolicy").is_some() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    report.one_of(path, policy, supported);
}

/// A controller's name with its domain.
pub(super) fn managed_by(spec: &Value, path: Path<'_>, report: &mut Report) {
    const LONGEST: usize = 63;
    let Some(name) = get(spec, "managedBy").and_then(Value::as_str) else { return };
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"/*%-._~!$&'()+,;=:".contains(&b);
    match name.split_once('/') {
        _ if name.is_empty() => report.required(path, ""),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            report.each(path, host, meta::dns1123_subdomain(host));
            if !rest.bytes().all(legal) {
                let detail = meta::regex_message("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
                report.invalid(path, rest, detail);
            }
        }
        _ => {
            report.invalid(path, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        }
    }
    if name.len() > LONGEST {
        report.too_long(path, LONGEST);
    }
}
