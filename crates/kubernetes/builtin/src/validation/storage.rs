//! Classes of storage and of volume attributes, volume attachments, CSI drivers, nodes and capacities.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use capstan_schema::field::FieldErrors;
use capstan_schema::golang;
use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use super::quantities::amount;
use super::report::{NOT_NEGATIVE, Report, entries, get, internal, list, maybe_int, same, text, texts};
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
        "CSIStorageCapacity" => storage_capacity(subject, report),
        "VolumeAttributesClass" => attributes_class(subject, report),
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
    provisioner(text(class, "provisioner"), Path::at("provisioner"), report);
    parameters(class, report);
    let policy = text(class, "reclaimPolicy");
    if !policy.is_empty() {
        report.one_of(Path::at("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    let mode = text(class, "volumeBindingMode");
    report.one_of(Path::at("volumeBindingMode"), mode, &["Immediate", "WaitForFirstConsumer"]);
    allowed_topologies(class, report);
}

fn provisioner(name: &str, path: Path<'_>, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
    } else {
        let lower = name.to_lowercase();
        report.each(path, &lower, meta::qualified_name(&lower));
    }
}

fn parameters(class: &Value, report: &mut Report) {
    let path = Path::at("parameters");
    let (mut count, mut size, mut unnamed) = (0, 0, false);
    for (key, value) in entries(class, "parameters") {
        unnamed |= key.is_empty();
        count += 1;
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if count > MAX_PARAMETERS {
        report.too_long(path, MAX_PARAMETERS);
        return;
    }
    if unnamed {
        report.invalid(path, "", "field can not be empty.");
    }
    if size > MAX_PARAMETER_BYTES {
        report.too_long(path, MAX_PARAMETER_BYTES);
    }
}

/// Terms select by labels of nodes; no two are the same.
fn allowed_topologies(class: &Value, report: &mut Report) {
    let terms = list(class, "allowedTopologies");
    let path = Path::at("allowedTopologies");
    // Upstream compares with as many empty terms as there are terms.
    let mut seen: HashMap<BTreeMap<&str, BTreeSet<&str>>, usize> =
        HashMap::from([(BTreeMap::new(), terms.len())]);
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let field = path.field("matchLabelExpressions");
        let mut by_key: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = field.index(index);
            let values = texts(requirement, "values");
            if values.is_empty() {
                report.required(path.field("values"), "");
            }
            let mut unique = BTreeSet::new();
            for (index, value) in values.into_iter().enumerate() {
                if !unique.insert(value) {
                    report.duplicate(path.field("values").index(index), value);
                }
            }
            let key = text(requirement, "key");
            report.each(path.field("key"), key, meta::qualified_name(key));
            if by_key.insert(key, unique).is_some() {
                report.duplicate(path.field("key"), key);
            }
        }
        let same = seen.entry(by_key).or_default();
        // Not more than are kept: there could be one for each pair of terms.
        let room = FieldErrors::MAX_ENTRIES.saturating_sub(report.errors.len()) + 1;
        (0..room.min(*same)).for_each(|_| report.duplicate(field, ""));
        *same += 1;
    }
}

fn storage_capacity(subject: &Subject<'_>, report: &mut Report) {
    let capacity = subject.new;
    if subject.old.is_some() {
        let found = std::mem::take(report);
        subject.metadata(report);
        storage_capacity_fields(capacity, report);
        report.extend(found.errors);
    } else {
        storage_capacity_fields(capacity, report);
    }
    if let Some(old) = subject.old {
        if !same(capacity.get("nodeTopology"), old.get("nodeTopology")) {
            let selector = capacity.get("nodeTopology").unwrap_or(&Value::Null);
            report.invalid_selector(Path::at("nodeTopology"), selector, meta::IMMUTABLE);
        }
        let (name, before) = (text(capacity, "storageClassName"), text(old, "storageClassName"));
        if name != before {
            report.invalid(Path::at("storageClassName"), name, meta::IMMUTABLE);
        }
    }
}

fn storage_capacity_fields(capacity: &Value, report: &mut Report) {
    if let Some(selector) = get(capacity, "nodeTopology") {
        report.extend(labels::validate(selector, &Path::at("nodeTopology")));
    }
    let name = text(capacity, "storageClassName");
    report.each(Path::at("storageClassName"), name, meta::name_is_dns_subdomain(name, false));
    if let Some(amount) = get(capacity, "capacity").map(amount)
        && amount.is_negative()
    {
        report.invalid(Path::at("capacity"), amount.to_string(), NOT_NEGATIVE);
    }
}

fn attributes_class(subject: &Subject<'_>, report: &mut Report) {
    let class = subject.new;
    if let Some(old) = subject.old {
        for key in ["driverName", "parameters"] {
            if !same(class.get(key), old.get(key)) {
                report.forbidden(Path::at(key), format!("updates to {key} are forbidden."));
            }
        }
        subject.metadata(report);
    }
    provisioner(text(class, "driverName"), Path::at("driverName"), report);
    parameters(class, report);
    if entries(class, "parameters").next().is_none() {
        report.required(Path::at("parameters"), "must contain at least one key/value pair");
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_equal_topologies_are_reported_without_comparing_every_pair() {
        let terms = vec![json!({}); 300_000];
        let class = json!({"allowedTopologies": terms});
        let mut report = Report::default();
        allowed_topologies(&class, &mut report);
        assert_eq!(report.errors.len(), FieldErrors::MAX_ENTRIES);
        assert!(report.errors.found() <= 300_000 + FieldErrors::MAX_ENTRIES + 1);
    }
}
