//! Namespaces, configuration, secrets, service accounts and events.

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::report::{Report, at, entries, flag, get, int, same, text, texts};
use super::{Subject, apps, kube_finalizer, node, pod, quota, service, storage_claims};
use crate::decode::base64_len;

const MAX_DATA: usize = 1024 * 1024;
const IMMUTABLE_DATA: &str = "field is immutable when `immutable` is set";

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    match subject.kind {
        "Namespace" => namespace(subject, report),
        "ConfigMap" => config_map(subject, report),
        "Secret" => secret(subject, report),
        "Event" => event(subject, report),
        "Service" => service::service(subject, report),
        "Endpoints" => service::endpoints(subject, report),
        "Node" => node::node(subject, report),
        "Pod" => pod::pod(subject, report),
        "PodTemplate" => pod::template(&subject.new["template"], &Path::at("template"), report),
        "ReplicationController" => apps::replication_controller(subject, report),
        "ResourceQuota" => quota::quota(subject, report),
        "LimitRange" => quota::limit_range(subject, report),
        "PersistentVolume" => storage_claims::volume(subject, report),
        "PersistentVolumeClaim" => storage_claims::claim(subject, report),
        _ => {}
    }
}

fn namespace(subject: &Subject<'_>, report: &mut Report) {
    let spec = Path::at("spec");
    let finalizers = spec.field("finalizers");
    match (subject.old, subject.subresource) {
        (None, _) => {
            for name in texts(&subject.new["spec"], "finalizers") {
                report.each(finalizers, name, meta::qualified_name(name));
                kube_finalizer(name, finalizers, report);
            }
        }
        (Some(_), "finalize") => {
            for (index, name) in texts(&subject.new["spec"], "finalizers").into_iter().enumerate() {
                report.each(finalizers.index(index), name, meta::qualified_name(name));
                kube_finalizer(name, finalizers.index(index), report);
            }
        }
        (Some(_), "status") => {
            let phase = text(&subject.new["status"], "phase");
            let deleted = at(subject.new, "/metadata/deletionTimestamp").is_some();
            let status = Path::at("status");
            // Upstream spells this path with a capital.
            let path = status.field("Phase");
            if !deleted && phase != "Active" {
                report.invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty");
            }
            if deleted && phase != "Terminating" {
                report.invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
            }
        }
        _ => {}
    }
}

/// An immutable object stays immutable, including its data.
fn immutable(new: &Value, old: &Value, fields: &[&str], report: &mut Report) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        report.forbidden(Path::at("immutable"), IMMUTABLE_DATA);
    }
    for field in fields {
        if !same(new.get(*field), old.get(*field)) {
            report.forbidden(Path::at(field), IMMUTABLE_DATA);
        }
    }
}

fn config_map(subject: &Subject<'_>, report: &mut Report) {
    if let Some(old) = subject.old {
        immutable(subject.new, old, &["data", "binaryData"], report);
        subject.metadata(report);
    }
    let mut size = 0;
    let (data, binary) = (Path::at("data"), Path::at("binaryData"));
    for (key, value) in entries(subject.new, "data") {
        report.each(data.key(key), key, meta::config_map_key(key));
        if subject.new.get("binaryData").is_some_and(|b| b.get(key).is_some()) {
            report.invalid(data.key(key), key.as_str(), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(subject.new, "binaryData") {
        report.each(binary.key(key), key, meta::config_map_key(key));
        size += base64_len(value.as_str().unwrap_or_default());
    }
    if size > MAX_DATA {
        // How upstream formats an empty path.
        report.too_long(Path::at("[]"), MAX_DATA);
    }
}

fn secret(subject: &Subject<'_>, report: &mut Report) {
    let new = subject.new;
    if let Some(old) = subject.old {
        report.immutable(Path::at("type"), new.get("type"), old.get("type"));
        immutable(new, old, &["data"], report);
        subject.metadata(report);
    }
    let data = Path::at("data");
    let mut size = 0;
    for (key, value) in entries(new, "data") {
        report.each(data.key(key), key, meta::config_map_key(key));
        size += base64_len(value.as_str().unwrap_or_default());
    }
    if size > MAX_DATA {
        report.too_long(data, MAX_DATA);
    }
    let has = |key: &str| new["data"].get(key).is_some();
    match text(new, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(&new["metadata"]["annotations"], key).is_empty() {
                let metadata = Path::at("metadata");
                report.required(metadata.field("annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => docker_config(new, ".dockercfg", report),
        "kubernetes.io/dockerconfigjson" => docker_config(new, ".dockerconfigjson", report),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            report.required(data.key("username"), "");
            report.required(data.key("password"), "");
        }
        "kubernetes.io/ssh-auth" if text(&new["data"], "ssh-privatekey").is_empty() => {
            report.required(data.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    report.required(data.key(key), "");
                }
            }
        }
        _ => {}
    }
}

fn docker_config(secret: &Value, key: &str, report: &mut Report) {
    use base64::Engine;
    let data = Path::at("data");
    let Some(encoded) = secret["data"].get(key) else {
        report.required(data.key(key), "");
        return;
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded.as_str().unwrap_or_default())
        .unwrap_or_default();
    if let Some(problem) = not_an_object(&bytes) {
        report.invalid(data.key(key), "<secret contents redacted>", problem);
    }
}

/// Go's error for a text that is not a JSON object, for common cases.
fn not_an_object(bytes: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => "array",
            };
            Some(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
        }
        Err(error) if error.is_eof() => Some("unexpected end of JSON input".to_owned()),
        Err(_) => {
            let shown = bytes.iter().find(|b| !b.is_ascii_whitespace()).map_or(' ', |b| char::from(*b));
            Some(format!("invalid character '{shown}' looking for beginning of value"))
        }
    }
}

/// Events of both groups; `events.k8s.io` has stricter rules. Fields have the names of the stored version, as in
/// upstream's internal type.
pub(super) fn event(subject: &Subject<'_>, report: &mut Report) {
    let new_style = subject.group == "events.k8s.io";
    // Metadata of events in the core group only has the common rules.
    report.errors.clear();
    let event = Event { value: subject.new, new_style };
    legacy_event(&event, report);
    if !new_style {
        return;
    }
    match subject.old {
        None => {
            subject.metadata(report);
            series(&event, report);
            if event.field("eventTime").is_none() {
                report.required(Path::at("eventTime"), "");
            }
            let kind = event.text("type");
            if !["Normal", "Warning"].contains(&kind) {
                report.invalid(Path::at("type"), "", format!("has invalid value: {kind}"));
            }
            for field in ["firstTimestamp", "lastTimestamp"] {
                if event.field(field).is_some() {
                    report.invalid(Path::at(field), "", "needs to be unset");
                }
            }
            if event.field("count").and_then(Value::as_i64).unwrap_or(0) != 0 {
                report.invalid(Path::at("count"), "", "needs to be unset");
            }
            let source = event.field("source").unwrap_or(&Value::Null);
            if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
                report.invalid(Path::at("source"), "", "needs to be unset");
            }
        }
        Some(old) => {
            subject.metadata_update(old, report);
            let before = Event { value: old, new_style };
            if !same(event.field("series"), before.field("series")) {
                series(&event, report);
            }
            for field in [
                "involvedObject",
                "reason",
                "message",
                "source",
                "firstTimestamp",
                "lastTimestamp",
                "count",
                "reason",
                "type",
                "eventTime",
                "action",
                "related",
                "reportingController",
                "reportingInstance",
            ] {
                report.immutable(Path::at(field), event.field(field), before.field(field));
            }
        }
    }
}

/// An event of either group, by the field names of the older one.
struct Event<'a> {
    value: &'a Value,
    new_style: bool,
}

impl<'a> Event<'a> {
    fn field(&self, name: &str) -> Option<&'a Value> {
        let name = match (self.new_style, name) {
            (true, "involvedObject") => "regarding",
            (true, "message") => "note",
            (true, "source") => "deprecatedSource",
            (true, "firstTimestamp") => "deprecatedFirstTimestamp",
            (true, "lastTimestamp") => "deprecatedLastTimestamp",
            (true, "count") => "deprecatedCount",
            (false, "reportingController") => "reportingComponent",
            (_, name) => name,
        };
        get(self.value, name)
    }

    fn text(&self, name: &str) -> &'a str {
        self.field(name).and_then(Value::as_str).unwrap_or_default()
    }
}

fn series(event: &Event<'_>, report: &mut Report) {
    if let Some(series) = event.field("series") {
        if int(series, "count") < 2 {
            report.invalid(Path::at("series.count"), "", "should be at least 2");
        }
        if get(series, "lastObservedTime").is_none() {
            report.required(Path::at("series.lastObservedTime"), "");
        }
    }
}

fn legacy_event(event: &Event<'_>, report: &mut Report) {
    let namespace = text(&event.value["metadata"], "namespace");
    let object = event.field("involvedObject").unwrap_or(&Value::Null);
    let about = text(object, "namespace");
    let involved = Path::at("involvedObject");
    let mismatch = "does not match event.namespace";
    if event.field("eventTime").is_none() {
        let wrong = if about.is_empty() { !["", "default"].contains(&namespace) } else { namespace != about };
        if wrong {
            report.invalid(involved.field("namespace"), about, mismatch);
        }
    } else {
        if about.is_empty() && !["default", "kube-system"].contains(&namespace) {
            report.invalid(involved.field("namespace"), about, mismatch);
        }
        let controller_field = if event.new_style { "reportingController" } else { "reportingComponent" };
        let controller = event.text("reportingController");
        if controller.is_empty() {
            report.required(Path::at(controller_field), "");
        }
        report.each(Path::at(controller_field), controller, meta::qualified_name(controller));
        for (field, needed, limit) in [
            ("reportingInstance", true, 128),
            ("action", true, 128),
            ("reason", true, 128),
            ("message", false, 1024),
        ] {
            let value = event.text(field);
            if needed && value.is_empty() {
                report.required(Path::at(field), "");
            }
            if value.len() > limit {
                report.invalid(Path::at(field), "", format!("can have at most {limit} characters"));
            }
        }
    }
    report.each(Path::at("namespace"), namespace, meta::dns1123_subdomain(namespace));
}
