//! Storage classes, volume attachments, CSI drivers and nodes.

use std::collections::{BTreeSet, HashMap};

use capstan_schema::golang;
use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::report::{Report, entries, get, internal, list, maybe_int, same, text, texts};
use super::{Subject, storage_claims};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 * 1024;
const MAX_ATTACHMENT_BYTES: usize = 256 * 1024;
const MAX_ERROR_BYTES: usize = 1024;

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    match subject.kind {
        "StorageClass" => storage_class(subject, report),
        "VolumeAttachment" => attachment(subject, report),
        "CSIDriver" => driver(subject, report),
        "CSINode" => csi_node(subject, report),
        _ => {}
    }
}

fn storage_class(subject: &Subject<'_>, report: &mut Report) {
    let class = subject.new;
    if let Some(old) = subject.old {
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            report.immutable(Path::at(key), class.get(key), old.get(key));
        }
        return;
    }
    let provisioner = text(class, "provisioner");
    if provisioner.is_empty() {
        report.required(Path::at("provisioner"), "");
    } else {
        let lower = provisioner.to_lowercase();
        report.each(Path::at("provisioner"), &lower, meta::qualified_name(&lower));
    }
    let path = Path::at("parameters");
    let (mut count, mut size) = (0, 0);
    for (key, value) in entries(class, "parameters") {
        if key.is_empty() {
            report.invalid(path, "", "field can not be empty.");
        }
        count += 1;
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if count > MAX_PARAMETERS {
        report.too_long(path, MAX_PARAMETERS);
    } else if size > MAX_PARAMETER_BYTES {
        report.too_long(path, MAX_PARAMETER_BYTES);
    }
    let policy = text(class, "reclaimPolicy");
    if !policy.is_empty() {
        report.one_of(Path::at("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    let mode = text(class, "volumeBindingMode");
    report.one_of(Path::at("volumeBindingMode"), mode, &["Immediate", "WaitForFirstConsumer"]);
}

/// A CSI driver's name: a domain, case-insensitive.
pub(super) fn driver_name(name: &str, path: Path<'_>, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    if name.len() > 63 {
        report.too_long(path, 63);
    }
    report.each(path, name, meta::dns1123_subdomain(&name.to_lowercase()));
}

fn attachment(subject: &Subject<'_>, report: &mut Report) {
    let (spec, status) = (&subject.new["spec"], &subject.new["status"]);
    if subject.old.is_some() {
        report.errors.clear();
        subject.metadata(report);
    }
    let path = Path::at("spec");
    driver_name(text(spec, "attacher"), path.field("attacher"), report);
    let source = &spec["source"];
    let field = path.field("source");
    let exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = get(source, "persistentVolumeName").and_then(Value::as_str);
    match (get(source, "inlineVolumeSpec"), volume) {
        (None, None) => report.required(field, exactly),
        (Some(_), Some(_)) => report.forbidden(field, exactly),
        (None, Some("")) => {
            report
                .required(field.field("persistentVolumeName"), "must specify non empty persistentVolumeName");
        }
        (Some(inline), None) => {
            storage_claims::volume_spec(inline, true, &field.field("inlineVolumeSpec"), report);
        }
        (None, Some(_)) => {}
    }
    let node = text(spec, "nodeName");
    report.each(path.field("nodeName"), node, meta::dns1123_subdomain(node));
    let path = Path::at("status");
    let size: usize =
        entries(status, "attachmentMetadata").map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ATTACHMENT_BYTES {
        report.too_long(path.field("attachmentMetadata"), MAX_ATTACHMENT_BYTES);
    }
    for key in ["attachError", "detachError"] {
        let Some(error) = get(status, key) else { continue };
        let field = path.field(key);
        if text(error, "message").len() > MAX_ERROR_BYTES {
            report.too_long(field.field("message"), MAX_ATTACHMENT_BYTES);
        }
        if let Some(code) = maybe_int(error, "errorCode").filter(|c| *c < 0) {
            report.invalid(field.field("errorCode"), code, "must be between 0 and 2147483647, inclusive");
        }
    }
    if let Some(name) = volume {
        report.each(Path::at("spec.source.persistentVolumeName"), name, meta::dns1123_subdomain(name));
    }
    if let Some(old) = subject.old
        && spec != &old["spec"]
    {
        let none = Value::Null;
        let of = |key: &str| source.get(key).unwrap_or(&none);
        let source = internal(&[
            ("PersistentVolumeName", of("persistentVolumeName")),
            ("InlineVolumeSpec", of("inlineVolumeSpec")),
        ]);
        let (attacher, node) = (golang::json(&spec["attacher"]), golang::json(&spec["nodeName"]));
        let shown = format!("{{\"Attacher\":{attacher},\"Source\":{source},\"NodeName\":{node}}}");
        report.invalid_as(Path::at("spec"), shown, meta::IMMUTABLE);
    }
}

fn driver(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    if let Some(policy) = get(spec, "fsGroupPolicy").and_then(Value::as_str) {
        report.one_of(path.field("fsGroupPolicy"), policy, &["File", "None", "ReadWriteOnceWithFSType"]);
    }
    let requests = path.field("tokenRequests");
    let mut audiences = std::collections::BTreeSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            report.duplicate(requests.index(index).field("audience"), audience);
        }
    }
    for mode in texts(spec, "volumeLifecycleModes") {
        report.one_of(path.field("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]);
    }
    if let Some(old) = subject.old.map(|o| &o["spec"]) {
        // Upstream misspells the first path.
        for (key, shown) in
            [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
        {
            report.immutable(path.field(shown), spec.get(key), old.get(key));
        }
    }
}

fn csi_node(subject: &Subject<'_>, report: &mut Report) {
    if subject.old.is_some() {
        report.errors.clear();
        subject.metadata(report);
    }
    let drivers = Path::at("spec.drivers");
    let mut names = BTreeSet::new();
    for (index, driver) in list(&subject.new["spec"], "drivers").iter().enumerate() {
        let path = drivers.index(index);
        let name = text(driver, "name");
        driver_name(name, path.field("name"), report);
        let id = text(driver, "nodeID");
        if id.is_empty() {
            report.required(path.field("nodeID"), "");
        } else if id.len() > 256 {
            report.invalid(path.field("nodeID"), id, "must be 256 characters or less");
        }
        if !names.insert(name) {
            report.duplicate(path.field("name"), name);
        }
        let mut keys = BTreeSet::new();
        for key in texts(driver, "topologyKeys") {
            if key.is_empty() {
                report.required(path, "");
            }
            if !keys.insert(key) {
                report.duplicate(path, key);
            }
            report.each(path, key, meta::qualified_name(key));
        }
    }
    let mut by_name: HashMap<&str, &Value> = HashMap::new();
    for driver in list(&subject.new["spec"], "drivers") {
        by_name.entry(text(driver, "name")).or_insert(driver);
    }
    for old in subject.old.into_iter().flat_map(|o| list(&o["spec"], "drivers")) {
        let twin = by_name.get(text(old, "name")).copied();
        let fixed = |d: &Value| {
            let mut d = d.clone();
            d["allocatable"] = Value::Null;
            d
        };
        if let Some(twin) = twin
            && !same(Some(&fixed(twin)), Some(&fixed(old)))
        {
            let shown = internal(&[
                ("Name", &twin["name"]),
                ("NodeID", &twin["nodeID"]),
                ("TopologyKeys", &twin["topologyKeys"]),
                ("Allocatable", &Value::Null),
            ]);
            report.invalid_as(drivers, shown, meta::IMMUTABLE);
        }
    }
}
