//! Persistent volumes and claims.

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::{Value, json};

use super::Subject;
use super::quantities::{amount_of, basic_amount, positive_amount, resource_amount};
use super::report::{Report, entries, get, list, map, same, text, texts};
use crate::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Volume sources; exactly one is set.
const SOURCES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "csi",
];

pub(super) fn volume(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        return;
    }
    if subject.old.is_some() {
        report.errors.clear();
        subject.metadata(report);
    }
    let spec = &subject.new["spec"];
    volume_spec(spec, false, &Path::at("spec"), report);
    if let Some(old) = subject.old.map(|o| &o["spec"]) {
        if SOURCES.iter().any(|s| !same(spec.get(s), old.get(s))) {
            let detail = "spec.persistentvolumesource is immutable after creation";
            report.forbidden(Path::at("spec.persistentvolumesource"), detail);
        }
        report.immutable(Path::at("volumeMode"), spec.get("volumeMode"), old.get("volumeMode"));
    }
}

/// `inline` volumes belong to an attachment and have fewer fields.
pub(super) fn volume_spec(spec: &Value, inline: bool, path: &Path<'_>, report: &mut Report) {
    let here = "may not be specified in the context of inline volumes";
    if inline {
        if get(spec, "claimRef").is_some() {
            report.forbidden(path.field("claimRef"), here);
        }
        if map(spec, "capacity").is_some_and(|m| !m.is_empty()) {
            report.forbidden(path.field("capacity"), here);
        }
        if get(spec, "csi").is_none() {
            report.required(path.field("csi"), "has to be specified in the context of inline volumes");
        }
    }
    if list(spec, "accessModes").is_empty() {
        report.required(path.field("accessModes"), "");
    }
    access_modes(spec, path.field("accessModes"), report);
    if !inline {
        capacity(spec, &path.field("capacity"), report);
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        report.one_of(path.field("persistentVolumeReclaimPolicy"), policy, &["Delete", "Recycle", "Retain"]);
    }
    if let Some(affinity) = get(spec, "nodeAffinity") {
        let path = path.field("nodeAffinity");
        match get(affinity, "required") {
            Some(selector) => super::pod::node_selector(selector, &path.field("required"), report),
            None => report.required(path.field("required"), "must specify required node constraints"),
        }
    }
    let mut sources = 0;
    for source in SOURCES {
        let Some(value) = get(spec, source) else { continue };
        if sources > 0 {
            report.forbidden(path.field(source), "may not specify more than 1 volume type");
            continue;
        }
        sources += 1;
        volume_source(source, value, &path.field(source), report);
        if source == "local" && get(spec, "nodeAffinity").is_none() {
            report.required(path.field("nodeAffinity"), "Local volume requires node affinity");
        }
    }
    if sources == 0 {
        report.required(*path, "must specify a volume type");
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        report.each(path.field("storageClassName"), class, meta::dns1123_subdomain(class));
    }
    if let Some(mode) = get(spec, "volumeMode").and_then(Value::as_str) {
        report.one_of(path.field("volumeMode"), mode, &VOLUME_MODES);
    }
}

fn access_modes(spec: &Value, path: Path<'_>, report: &mut Report) {
    let modes = texts(spec, "accessModes");
    for mode in &modes {
        report.one_of(path, mode, &ACCESS_MODES);
    }
    let (pod, other): (Vec<&str>, Vec<&str>) =
        modes.into_iter().filter(|m| ACCESS_MODES.contains(m)).partition(|m| *m == "ReadWriteOncePod");
    if !pod.is_empty() && !other.is_empty() {
        report.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn capacity(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let capacity = map(spec, "capacity");
    if capacity.is_none_or(|m| m.is_empty()) {
        report.required(*path, "");
    }
    if capacity.is_none_or(|m| !m.contains_key("storage") || m.len() > 1) {
        report.not_supported(*path, spec.get("capacity").cloned().unwrap_or_default(), &["storage"]);
    }
    for (name, value) in entries(spec, "capacity") {
        basic_amount(value, path.key(name), report);
        positive_amount(value, path.key(name), report);
    }
}

/// The sources that management clusters use; others are not validated.
fn volume_source(kind: &str, source: &Value, path: &Path<'_>, report: &mut Report) {
    match kind {
        "hostPath" => super::pod::host_path(source, path, report),
        "local" => {
            let target = text(source, "path");
            if target.is_empty() {
                report.required(path.field("path"), "");
            } else {
                super::pod::no_backsteps(target, path.field("path"), report);
            }
        }
        "nfs" => super::pod::nfs(source, path, report),
        "csi" => {
            super::storage::driver_name(text(source, "driver"), path.field("driver"), report);
            if text(source, "volumeHandle").is_empty() {
                report.required(path.field("volumeHandle"), "");
            }
        }
        _ => {}
    }
}

pub(super) fn claim(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    if subject.subresource == "status" {
        if list(spec, "accessModes").is_empty() {
            report.required(Path::at("Spec.accessModes"), "");
        }
        for (name, value) in entries(&subject.new["status"], "capacity") {
            basic_amount(value, Path::at("status.capacity").key(name), report);
        }
        return;
    }
    if subject.old.is_some() {
        subject.metadata(report);
    }
    claim_spec(spec, &Path::at("spec"), report);
    if let Some(old) = subject.old {
        claim_update(subject, spec, &old["spec"], old, report);
    }
}

pub(super) fn claim_spec(spec: &Value, path: &Path<'_>, report: &mut Report) {
    if list(spec, "accessModes").is_empty() {
        report.required(path.field("accessModes"), "at least 1 access mode is required");
    }
    if let Some(selector) = get(spec, "selector") {
        report.extend(labels::validate(selector, &path.field("selector")));
    }
    access_modes(spec, path.field("accessModes"), report);
    let resources = path.field("resources");
    let storage = resources.key("storage");
    match map(&spec["resources"], "requests").and_then(|r| r.get("storage")) {
        None => report.required(storage, ""),
        Some(value) => {
            let found = report.errors.len();
            positive_amount(value, storage, report);
            if report.errors.len() == found {
                resource_amount("storage", value, storage, report);
            }
        }
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, key);
        if !class.is_empty() {
            report.each(path.field(key), class, meta::dns1123_subdomain(class));
        }
    }
    if let Some(mode) = get(spec, "volumeMode").and_then(Value::as_str) {
        report.one_of(path.field("volumeMode"), mode, &VOLUME_MODES);
    }
    for key in ["dataSource", "dataSourceRef"] {
        if let Some(source) = get(spec, key) {
            data_source(source, &path.field(key), report);
        }
    }
}

fn data_source(source: &Value, path: &Path<'_>, report: &mut Report) {
    for key in ["name", "kind"] {
        if text(source, key).is_empty() {
            report.required(path.field(key), "");
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        report.invalid(*path, kind, detail);
    }
    if !group.is_empty() {
        report.each(path.field("apiGroup"), group, meta::dns1123_subdomain(group));
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        report.each(path.field("namespace"), namespace, meta::dns1123_label(namespace));
    }
}

fn claim_update(subject: &Subject<'_>, new: &Value, old: &Value, old_claim: &Value, report: &mut Report) {
    let (mut after, mut before) = (new.clone(), old.clone());
    if text(old, "volumeName").is_empty() {
        before["volumeName"] = after["volumeName"].clone();
    }
    if get(old, "storageClassName").is_none() && get(new, "storageClassName").is_some() {
        // A class may be set on a claim that has none.
        before["storageClassName"] = after["storageClassName"].clone();
    }
    if text(&subject.new["status"], "phase") == "Bound" {
        for spec in [&mut after, &mut before] {
            spec["resources"]["requests"]["storage"] = json!("0");
            spec["volumeAttributesClassName"] = Value::Null;
        }
    }
    let full = |spec: &Value| -> Value {
        let kept = spec.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null());
        Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect())
    };
    if full(&after) != full(&before) {
        let detail = "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims";
        report.forbidden(Path::at("spec"), detail);
    }
    let storage = |spec: &Value| amount_of(map(&spec["resources"], "requests"), "storage");
    let capacity = amount_of(map(&old_claim["status"], "capacity"), "storage")
        .unwrap_or_else(|| Quantity::from_integer(0));
    if let (Some(now), Some(then)) = (storage(new), storage(old))
        && now < then
        && now <= capacity
    {
        let path = Path::at("spec.resources.requests.storage");
        report.forbidden(path, "field can not be less than status.capacity");
    }
    report.immutable(Path::at("volumeMode"), new.get("volumeMode"), old.get("volumeMode"));
}
