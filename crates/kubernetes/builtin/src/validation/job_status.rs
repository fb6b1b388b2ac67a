//! The status of a Job: what may be reported together, and what may not be taken back.
//!
//! As upstream, most rules apply only when what they judge changes, so that an older status can still be updated.

use std::collections::BTreeSet;

use capstan_schema::path::Path;
use serde_json::Value;

use super::job_policies::{index_count, index_interval, invalid_unshown};
use super::report::{Report, get, int, list, maybe_int, same, text, texts};

fn conditions(detail: &str, report: &mut Report) {
    invalid_unshown(Path::at("status.conditions"), detail, report);
}

fn is_true(status: &Value, kind: &str) -> bool {
    let found = list(status, "conditions").iter().find(|condition| text(condition, "type") == kind);
    found.is_some_and(|condition| text(condition, "status") == "True")
}

fn is_false(status: &Value, kind: &str) -> bool {
    let found = list(status, "conditions").iter().find(|condition| text(condition, "type") == kind);
    found.is_some_and(|condition| text(condition, "status") == "False")
}

fn finished(status: &Value) -> bool {
    is_true(status, "Complete") || is_true(status, "Failed")
}

pub(super) fn validate(new_job: &Value, old_job: &Value, report: &mut Report) {
    let (spec, new, old) = (&new_job["spec"], &new_job["status"], &old_job["status"]);
    let none = Value::Null;
    let field = |key: &str| new.get(key).unwrap_or(&none).clone();
    let path = Path::at("status");
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        report.not_negative(path.field(key), int(new, key));
    }
    uncounted(new, report);

    let changed = |key: &str| !same(new.get(key), old.get(key));
    let switched = |kind: &str| is_true(new, kind) != is_true(old, kind);
    let (complete, failed) = (is_true(new, "Complete"), is_true(new, "Failed"));
    let (target, met) = (is_true(new, "FailureTarget"), is_true(new, "SuccessCriteriaMet"));
    let done = finished(new);
    let finishing = done != finished(old);
    let started = get(new, "startTime").is_some();
    let completed = get(new, "completionTime").is_some();

    if complete && failed && (switched("Complete") || switched("Failed")) {
        conditions("cannot set Complete=True and Failed=true conditions", report);
    }
    if complete && target && (switched("Complete") || switched("FailureTarget")) {
        conditions("cannot set Complete=True and FailureTarget=true conditions", report);
    }
    if switched("Complete") || changed("completionTime") {
        let path = path.field("completionTime");
        if completed && !complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            report.invalid(path, field("completionTime"), detail);
        }
        if !completed && complete {
            report.required(path, "completionTime is required for Complete jobs");
        }
    }
    if (changed("startTime") || changed("completionTime"))
        && started
        && completed
        && text(new, "completionTime") < text(new, "startTime")
    {
        let detail = "must be equal to or after `startTime`";
        report.invalid(path.field("completionTime"), field("completionTime"), detail);
    }
    if failed && !target && (switched("Failed") || changed("failedIndexes")) {
        let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
        conditions(detail, report);
    }
    if complete && !met && (switched("Complete") || switched("SuccessCriteriaMet")) {
        let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        conditions(detail, report);
    }
    if done && int(new, "active") > 0 && (finishing || changed("active")) {
        report.invalid(path.field("active"), int(new, "active"), "active>0 is invalid for finished job");
    }
    let never_starts = spec["suspend"] == true && maybe_int(spec, "completions") == Some(0);
    if done && !started && (finishing || changed("startTime")) && !never_starts {
        report.required(path.field("startTime"), "startTime is required for finished job");
    }
    if done && (finishing || changed("uncountedTerminatedPods")) && has_uncounted(new) {
        let pods = field("uncountedTerminatedPods");
        let shown = super::report::internal(&[
            ("Succeeded", pods.get("succeeded").unwrap_or(&none)),
            ("Failed", pods.get("failed").unwrap_or(&none)),
        ]);
        report.invalid_as(path.field("uncountedTerminatedPods"), shown, "must be empty for finished job");
    }
    indexes(spec, new, old, report);
    if done && int(new, "terminating") > 0 && (finishing || changed("terminating")) {
        let detail = "terminating>0 is invalid for finished job";
        report.invalid(path.field("terminating"), field("terminating"), detail);
    }
    if (changed("ready") || changed("active")) && int(new, "ready") > int(new, "active") {
        report.invalid(path.field("ready"), int(new, "ready"), "cannot set more ready pods than active");
    }
    if met && failed {
        conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", report);
    }
    if met && target {
        let detail = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        conditions(detail, report);
    }
    if get(spec, "successPolicy").is_some() && !met && complete {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        conditions(detail, report);
    }
    taken_back(spec, new, old, report);
}

fn uncounted(status: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    let path = Path::at("status.uncountedTerminatedPods");
    for key in ["succeeded", "failed"] {
        let field = path.field(key);
        for (index, uid) in texts(&status["uncountedTerminatedPods"], key).into_iter().enumerate() {
            if uid.is_empty() {
                report.invalid(field.index(index), uid, "must not be empty");
            } else if !seen.insert(uid) {
                report.duplicate(field.index(index), uid);
            }
        }
    }
}

fn has_uncounted(status: &Value) -> bool {
    ["succeeded", "failed"].iter().any(|key| !list(&status["uncountedTerminatedPods"], key).is_empty())
}

/// Indexes that have completed or failed.
fn indexes(spec: &Value, new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("status");
    let completions = maybe_int(spec, "completions");
    let per_index = get(spec, "backoffLimitPerIndex").is_some();
    let completed = text(new, "completedIndexes");
    let failed = get(new, "failedIndexes").and_then(Value::as_str);
    let completed_changed = completed != text(old, "completedIndexes");
    let failed_changed = get(new, "failedIndexes") != get(old, "failedIndexes");
    if let Some(completions) = completions {
        if completed_changed && let Err(why) = index_count(completed, completions) {
            let detail = format!("error parsing completedIndexes: {why}");
            report.invalid(path.field("completedIndexes"), completed, detail);
        }
        if failed_changed
            && per_index
            && let Some(failed) = failed
            && let Err(why) = index_count(failed, completions)
        {
            let detail = format!("error parsing failedIndexes: {why}");
            report.invalid(path.field("failedIndexes"), failed, detail);
        }
    }
    if completed_changed && !completed.is_empty() && text(spec, "completionMode") != "Indexed" {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        report.invalid(path.field("completedIndexes"), completed, detail);
    }
    let Some(failed) = failed else { return };
    if failed_changed && !per_index {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        report.invalid(path.field("failedIndexes"), failed, detail);
    }
    if (failed_changed || completed_changed)
        && let Some(completions) = completions
        && let Some(common) = overlap(completed, failed, completions)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {common}");
        report.invalid(path.field("failedIndexes"), failed, detail);
    }
}

/// The first index in both texts. Intervals that cannot be read are reported elsewhere.
fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| index_interval(interval, completions).ok()).collect()
    };
    let (one, other) = (read(one), read(other));
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        if a.0.max(b.0) <= a.1.min(b.1) {
            return Some(a.0.max(b.0));
        }
        if a.1 < b.1 { i += 1 } else { j += 1 }
    }
    None
}

/// What a Job has reached stays.
fn taken_back(spec: &Value, new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("status");
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, kind) && !is_true(new, kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            conditions(&detail, report);
        }
    }
    if int(new, "failed") < int(old, "failed") {
        report.invalid(path.field("failed"), int(new, "failed"), "cannot decrease the failed counter");
    }
    let scales =
        text(spec, "completionMode") == "Indexed" && spec.get("completions") == spec.get("parallelism");
    if !scales && int(new, "succeeded") < int(old, "succeeded") {
        let detail = "cannot decrease the succeeded counter";
        report.invalid(path.field("succeeded"), int(new, "succeeded"), detail);
    }
    let times = |key: &str| (get(new, key), get(old, key));
    if let (Some(after), Some(before)) = times("completionTime")
        && after != before
    {
        report.invalid(path.field("completionTime"), after.clone(), "field is immutable");
    }
    let resumes = is_true(old, "Suspended") && is_false(new, "Suspended");
    if let (after, Some(before)) = times("startTime")
        && after != Some(before)
        && !resumes
        && spec["suspend"] != true
    {
        let detail = "field is immutable for unsuspended job once set";
        report.invalid(path.field("startTime"), after.cloned().unwrap_or_default(), detail);
    }
    let met = |status: &Value| is_true(status, "SuccessCriteriaMet");
    if met(old) && !met(new) {
        conditions("cannot disable the SuccessCriteriaMet=True condition", report);
    }
    if is_true(old, "Complete") && !met(old) && met(new) {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        conditions(detail, report);
    }
}
