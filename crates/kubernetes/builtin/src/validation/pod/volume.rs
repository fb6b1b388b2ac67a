//! Volumes of pods.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use crate::validation::quantities::amount;
use crate::validation::report::{Report, get, list, maybe_int, text};
use crate::validation::storage_claims;

/// Names that mounts may refer to: those of valid volumes.
pub(super) type Volumes<'a> = BTreeSet<&'a str>;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

pub(super) fn volumes<'a>(spec: &'a Value, pod: &str, path: &Path<'_>, report: &mut Report) -> Volumes<'a> {
    let mut names = BTreeSet::new();
    let all = list(spec, "volumes");
    let created: BTreeSet<String> = all
        .iter()
        .filter(|v| get(v, "ephemeral").is_some() && !pod.is_empty())
        .map(|v| format!("{pod}-{}", text(v, "name")))
        .collect();
    for (index, volume) in all.iter().enumerate() {
        let item = path.index(index);
        let found = report.errors.len();
        source(volume, &item, report);
        let name = text(volume, "name");
        if name.is_empty() {
            report.required(item.field("name"), "");
        } else {
            report.each(item.field("name"), name, meta::dns1123_label(name));
        }
        if names.contains(name) {
            report.duplicate(item.field("name"), name);
        }
        if report.errors.len() == found {
            names.insert(name);
        }
        let claim = text(&volume["persistentVolumeClaim"], "claimName");
        if created.contains(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            report.invalid(item.field("persistentVolumeClaim").field("claimName"), claim, detail);
        }
    }
    names
}

fn source(volume: &Value, path: &Path<'_>, report: &mut Report) {
    let mut found = 0;
    for (key, value) in volume.as_object().into_iter().flatten().filter(|(k, v)| *k != "name" && !v.is_null())
    {
        let field = path.field(key);
        found += 1;
        if found > 1 {
            report.forbidden(field, "may not specify more than 1 volume type");
            continue;
        }
        match key.as_str() {
            "emptyDir" if value.get("sizeLimit").is_some_and(|l| amount(l).is_negative()) => {
                let detail = "SizeLimit field must be a valid resource quantity";
                report.forbidden(field.field("sizeLimit"), detail);
            }
            "hostPath" => host_path(value, &field, report),
            "secret" => items(value, Some("secretName"), &field, report),
            "configMap" => items(value, Some("name"), &field, report),
            "persistentVolumeClaim" if text(value, "claimName").is_empty() => {
                report.required(field.field("claimName"), "");
            }
            "nfs" => nfs(value, &field, report),
            "projected" => projected(value, &field, report),
            "ephemeral" => match get(value, "volumeClaimTemplate") {
                None => report.required(field.field("volumeClaimTemplate"), ""),
                Some(template) => {
                    let template_path = field.field("volumeClaimTemplate");
                    storage_claims::claim_spec(&template["spec"], &template_path.field("spec"), report);
                }
            },
            _ => {}
        }
    }
    if found == 0 {
        report.required(*path, "must specify a volume type");
    }
}

/// Keys of a ConfigMap or Secret, as files.
fn items(value: &Value, name: Option<&str>, path: &Path<'_>, report: &mut Report) {
    if let Some(key) = name.filter(|key| text(value, key).is_empty()) {
        report.required(path.field(key), "");
    }
    mode(value, "defaultMode", path, report);
    let field = path.field("items");
    for (index, item) in list(value, "items").iter().enumerate() {
        let path = field.index(index);
        for key in ["key", "path"] {
            if text(item, key).is_empty() {
                report.required(path.field(key), "");
            }
        }
        let target = text(item, "path");
        descending_path(target, path.field("path"), report);
        if target.starts_with("..") && !target.starts_with("../") {
            report.invalid(path.field("path"), target, "must not start with '..'");
        }
        mode(item, "mode", &path, report);
    }
}

fn mode(value: &Value, key: &str, path: &Path<'_>, report: &mut Report) {
    if let Some(mode) = maybe_int(value, key).filter(|m| !(0..=0o777).contains(m)) {
        report.invalid(path.field(key), mode, MODE);
    }
}

fn projected(value: &Value, path: &Path<'_>, report: &mut Report) {
    mode(value, "defaultMode", path, report);
    let field = path.field("sources");
    for (index, source) in list(value, "sources").iter().enumerate() {
        let path = field.index(index);
        for key in ["secret", "configMap"] {
            if let Some(inner) = get(source, key) {
                items(inner, Some("name"), &path.field(key), report);
            }
        }
    }
}

pub(in crate::validation) fn host_path(source: &Value, path: &Path<'_>, report: &mut Report) {
    let target = text(source, "path");
    if target.is_empty() {
        report.required(path.field("path"), "");
        return;
    }
    no_backsteps(target, path.field("path"), report);
    if let Some(kind) = get(source, "type").and_then(Value::as_str) {
        let known = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        report.one_of(path.field("type"), kind, &known);
    }
}

pub(in crate::validation) fn nfs(source: &Value, path: &Path<'_>, report: &mut Report) {
    for key in ["server", "path"] {
        if text(source, key).is_empty() {
            report.required(path.field(key), "");
        }
    }
    if !text(source, "path").starts_with('/') {
        report.invalid(path.field("path"), text(source, "path"), "must be an absolute path");
    }
}

pub(in crate::validation) fn no_backsteps(target: &str, path: Path<'_>, report: &mut Report) {
    if target.split('/').any(|part| part == "..") {
        report.invalid(path, target, "must not contain '..'");
    }
}

pub(super) fn descending_path(target: &str, path: Path<'_>, report: &mut Report) {
    if target.starts_with('/') {
        report.invalid(path, target, "must be a relative path");
    }
    no_backsteps(target, path, report);
}
