//! Jobs and cron jobs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::{LabelSelector, labels};
use serde_json::{Value, json};

use super::report::{Report, get, int, internal, list, maybe_int, same, text};
use super::{Subject, job_policies, job_status, pod};

/// Completions above which a limit per index is restricted.
const MANY_COMPLETIONS: i64 = 100_000;
const MOST_OF_MANY: i64 = 10_000;

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    match (subject.kind, subject.subresource) {
        ("Job", "") => job(subject, report),
        ("CronJob", "") => cron_job(subject, report),
        ("Job", "status") => {
            if let Some(old) = subject.old {
                job_status::validate(subject.new, old, report);
            }
        }
        _ => {}
    }
}

fn job(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    if subject.old.is_none() {
        generated_selector(subject.new, report);
    }
    job_spec(spec, &path, report);
    match get(spec, "selector") {
        None => report.required(path.field("selector"), ""),
        Some(selector) => report.extend(labels::validate(selector, &path.field("selector"))),
    }
    let template_labels = &spec["template"]["metadata"]["labels"];
    if LabelSelector::from_object(&spec["selector"])
        .is_ok_and(|s| !s.matches_labels(template_labels.as_object()))
    {
        let field = Path::at("spec.template.metadata.labels");
        report.invalid(field, template_labels.clone(), "`selector` does not match template `labels`");
    }
    if let Some(old) = subject.old {
        job_update(spec, &old["spec"], report);
    }
}

/// A job without a manual selector has the labels that the server generated.
fn generated_selector(job: &Value, report: &mut Report) {
    let spec = &job["spec"];
    if spec["manualSelector"] == true || get(spec, "selector").is_none() {
        return;
    }
    let (uid, name) = (text(&job["metadata"], "uid"), text(&job["metadata"], "name"));
    let labels = &spec["template"]["metadata"]["labels"];
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let metadata = Path::at("spec.template.metadata");
    let field = metadata.field("labels");
    for (key, wanted) in expected {
        match labels.get(key).and_then(Value::as_str) {
            None => report.required(field.key(key), format!("must be '{wanted}'")),
            Some(found) if found != wanted => {
                report.invalid(field.key(key), labels.clone(), format!("must be '{wanted}'"));
            }
            Some(_) => {}
        }
    }
    let own: Value = expected.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
    if LabelSelector::from_object(&spec["selector"]).is_ok_and(|s| !s.matches_labels(own.as_object())) {
        report.invalid_selector(
            Path::at("spec.selector"),
            &spec["selector"],
            "`selector` not auto-generated",
        );
    }
}

fn job_spec(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        report.not_negative(path.field(key), int(spec, key));
    }
    let per_index = maybe_int(spec, "backoffLimitPerIndex");
    let max_failed = maybe_int(spec, "maxFailedIndexes");
    if max_failed.is_some() && per_index.is_none() {
        report.required(path.field("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    job_policies::managed_by(spec, path.field("managedBy"), report);
    let mode = get(spec, "completionMode").and_then(Value::as_str);
    if let Some(mode) = mode {
        report.one_of(path.field("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    if mode == Some("Indexed") {
        if get(spec, "completions").is_none() {
            report.required(path.field("completions"), "when completion mode is Indexed");
        }
        if int(spec, "parallelism") > 100_000 {
            let detail = "must be less than or equal to 100000 when completion mode is Indexed";
            report.invalid(path.field("parallelism"), int(spec, "parallelism"), detail);
        }
        if let (Some(completions), Some(failed)) = (maybe_int(spec, "completions"), max_failed)
            && failed > completions
        {
            report.invalid(
                path.field("maxFailedIndexes"),
                failed,
                "must be less than or equal to completions",
            );
        }
        if let Some(failed) = max_failed.filter(|failed| *failed > MANY_COMPLETIONS) {
            let detail = format!("must be less than or equal to {MANY_COMPLETIONS}");
            report.invalid(path.field("maxFailedIndexes"), failed, detail);
        }
        if int(spec, "completions") > MANY_COMPLETIONS && per_index.is_some() {
            many_completions(spec, max_failed, path, report);
        }
    } else if mode.is_none_or(|mode| mode == "NonIndexed") {
        for (key, value) in [("backoffLimitPerIndex", per_index), ("maxFailedIndexes", max_failed)] {
            if let Some(value) = value {
                report.invalid(path.field(key), value, "requires indexed completion mode");
            }
        }
    }
    if get(spec, "podFailurePolicy").is_some() {
        job_policies::failure_policy(spec, &path.field("podFailurePolicy"), report);
    }
    if let Some(policy) = get(spec, "successPolicy") {
        let path = path.field("successPolicy");
        if mode == Some("Indexed") {
            job_policies::success_policy(spec, &path, report);
        } else {
            report.invalid_as(path, success_policy_text(policy), "requires indexed completion mode");
        }
    }
    job_policies::replacement_policy(spec, path.field("podReplacementPolicy"), report);
    pod::template(&spec["template"], &path.field("template"), report);
    let template = path.field("template");
    let field = template.field("spec");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "" | "Always" => {
            report.required(field.field("restartPolicy"), "valid values: \"OnFailure\", \"Never\"");
        }
        "OnFailure" if get(spec, "podFailurePolicy").is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            report.invalid(field.field("restartPolicy"), "OnFailure", detail);
        }
        policy => report.one_of(field.field("restartPolicy"), policy, &["OnFailure", "Never"]),
    }
}

fn many_completions(spec: &Value, max_failed: Option<i64>, path: &Path<'_>, report: &mut Report) {
    let limits = format!(
        "must be less than or equal to {MOST_OF_MANY} when completions are above {MANY_COMPLETIONS} and used with \
         backoff limit per index"
    );
    if max_failed.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        report.required(path.field("maxFailedIndexes"), detail);
    }
    if int(spec, "parallelism") > MOST_OF_MANY {
        report.invalid(path.field("parallelism"), int(spec, "parallelism"), limits.clone());
    }
    if let Some(failed) = max_failed.filter(|failed| *failed > MOST_OF_MANY) {
        report.invalid(path.field("maxFailedIndexes"), failed, limits);
    }
}

/// A success policy as Go writes its internal type.
fn success_policy_text(policy: &Value) -> String {
    let none = Value::Null;
    let rules: Vec<String> = list(policy, "rules")
        .iter()
        .map(|rule| {
            let of = |key: &str| rule.get(key).unwrap_or(&none);
            internal(&[
                ("SucceededIndexes", of("succeededIndexes")),
                ("SucceededCount", of("succeededCount")),
            ])
        })
        .collect();
    match get(policy, "rules") {
        None => "{\"Rules\":null}".to_owned(),
        Some(_) => format!("{{\"Rules\":[{}]}}", rules.join(",")),
    }
}

fn job_update(new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("spec");
    if text(new, "completionMode") != "Indexed" {
        report.immutable(path.field("completions"), new.get("completions"), old.get("completions"));
    } else if !same(new.get("completions"), old.get("completions"))
        && get(new, "completions").is_some_and(|c| Some(c) != new.get("parallelism"))
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        report.invalid(path.field("completions"), new["completions"].clone(), detail);
    }
    report.immutable_selector(path.field("selector"), new.get("selector"), old.get("selector"));
    if new["template"] != old["template"] && old["suspend"] != true {
        report.invalid(path.field("template"), new["template"].clone(), meta::IMMUTABLE);
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        report.immutable(path.field(key), new.get(key), old.get(key));
    }
}

fn cron_job(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        report.required(path.field("schedule"), "");
    } else {
        let zoned_before = subject.old.is_some_and(|o| text(&o["spec"], "schedule").contains("TZ"));
        if let Some(problem) = super::cron::problem(schedule) {
            report.invalid(path.field("schedule"), schedule, problem);
        }
        if schedule.contains("TZ") {
            if !zoned_before {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                report.invalid(path.field("schedule"), schedule, detail);
            } else if get(spec, "timeZone").is_some() {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                report.invalid(path.field("schedule"), schedule, detail);
            }
        }
    }
    report.not_negative(path.field("startingDeadlineSeconds"), int(spec, "startingDeadlineSeconds"));
    let changed = subject.old.is_none_or(|o| !same(o["spec"].get("timeZone"), spec.get("timeZone")));
    if let Some(zone) = get(spec, "timeZone").and_then(Value::as_str).filter(|_| changed) {
        time_zone(zone, path.field("timeZone"), report);
    }
    match text(spec, "concurrencyPolicy") {
        "" => report.required(path.field("concurrencyPolicy"), ""),
        policy => report.one_of(path.field("concurrencyPolicy"), policy, &["Allow", "Forbid", "Replace"]),
    }
    let template = &spec["jobTemplate"]["spec"];
    let field = path.field("jobTemplate");
    let field = field.field("spec");
    job_spec(template, &field, report);
    if let Some(selector) = get(template, "selector") {
        report.invalid_selector(field.field("selector"), selector, "`selector` will be auto-generated");
    }
    if template["manualSelector"] == true {
        report.not_supported(field.field("manualSelector"), true, &["nil", "false"]);
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        report.not_negative(path.field(key), int(spec, key));
    }
    let name = text(&subject.new["metadata"], "name");
    if subject.old.is_none() && name.len() > 52 {
        report.invalid(Path::at("metadata.name"), name, "must be no more than 52 characters");
    }
}

/// A time zone that Go's standard library can load.
fn time_zone(zone: &str, path: Path<'_>, report: &mut Report) {
    if zone.is_empty() {
        report.invalid(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let odd = |part: &str| {
        let legal = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.+-".contains(&b));
        part == "." || part == ".." || part.starts_with('-') || part.is_empty() || part.len() > 14 || !legal
    };
    if zone.split('/').any(odd) {
        report.invalid(path, zone, format!("unknown time zone {zone}"));
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        report.invalid(path, zone, detail);
    }
    if zone != "Local" && !zones().contains(zone) {
        report.invalid(path, zone, format!("unknown time zone {zone}"));
    }
}

fn zones() -> &'static BTreeSet<&'static str> {
    static ZONES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        include_str!("../facts/time-zones.txt").lines().filter(|line| !line.starts_with('#')).collect()
    });
    &ZONES
}
