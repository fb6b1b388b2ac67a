//! kube-apiserver's strategies for built-in objects: which fields a request may not change, when the generation is
//! incremented, create on update. Pure functions; the API server calls them in its pipeline.

mod job;
mod pod;
mod service;

use capstan_schema::meta::{self, NameCheck};
use serde_json::{Map, Value, json};

use crate::kinds;
use crate::table::table;
use crate::{validation, zero};

type Object = Map<String, Value>;

/// The strategy of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// Allowed names.
    pub name: NameCheck,
    /// PUT of an object that does not exist creates it.
    pub create_on_update: bool,
    /// PUT without a resource version overwrites the object.
    pub unconditional_update: bool,
    /// Deletion has a grace period.
    pub graceful_delete: bool,
    pub generation: Generation,
}

/// When the generation is incremented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Never: clients may write the field.
    Unmanaged,
    /// Set to 1 and never incremented.
    Constant,
    /// When one of these JSON pointers changes.
    On(&'static [&'static str]),
    /// When anything except metadata changes, or the labels.
    OnContentOrLabels,
}

const SPEC: Generation = Generation::On(&["/spec"]);

pub fn strategy(group: &str, kind: &str) -> Strategy {
    let create_on_update = matches!(
        (group, kind),
        ("", "Endpoints" | "Event" | "LimitRange" | "Service")
            | ("events.k8s.io", "Event")
            | ("coordination.k8s.io", "Lease")
            | ("node.k8s.io", "RuntimeClass")
            | ("rbac.authorization.k8s.io", _)
    );
    let conditional_update = matches!(
        (group, kind),
        ("admissionregistration.k8s.io" | "apiextensions.k8s.io" | "apiregistration.k8s.io", _)
            | ("coordination.k8s.io", "Lease")
            | ("node.k8s.io", "RuntimeClass")
            | ("policy", "PodDisruptionBudget")
            | ("storage.k8s.io", "CSIDriver" | "CSINode" | "CSIStorageCapacity" | "VolumeAttachment")
    );
    Strategy {
        name: name_check(group, kind),
        create_on_update,
        unconditional_update: !conditional_update,
        graceful_delete: (group, kind) == ("", "Pod"),
        generation: generation(group, kind),
    }
}

fn name_check(group: &str, kind: &str) -> NameCheck {
    match (group, kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => meta::name_is_dns_label,
        ("rbac.authorization.k8s.io", _) => meta::path_segment,
        ("apiregistration.k8s.io", "APIService") => meta::path_segment,
        ("networking.k8s.io", "IPAddress") => validation::address_name,
        _ => meta::name_is_dns_subdomain,
    }
}

fn generation(group: &str, kind: &str) -> Generation {
    match (group, kind) {
        ("apps", "Deployment") => Generation::On(&["/spec", "/metadata/annotations"]),
        ("apps", "DaemonSet" | "StatefulSet" | "ReplicaSet")
        | ("", "ReplicationController" | "Pod")
        | ("batch", _)
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("resource.k8s.io", "DeviceClass" | "ResourceSlice") => SPEC,
        ("", "PodTemplate") => Generation::On(&["/template"]),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => Generation::On(&["/webhooks"]),
        ("admissionregistration.k8s.io", _) => SPEC,
        ("scheduling.k8s.io", "PriorityClass") => Generation::Constant,
        ("discovery.k8s.io", "EndpointSlice") => Generation::OnContentOrLabels,
        _ => Generation::Unmanaged,
    }
}

/// Completes a new object. Its name, uid and creation time must be set.
pub fn prepare_create(group: &str, kind: &str, object: &mut Value) {
    let Value::Object(object) = object else { return };
    if (group, kind) == ("", "Pod") {
        pod::prepare_create(object);
    } else if resets_status(group, kind) {
        reset_status(group, kind, object);
    }
    match (group, kind) {
        ("", "Namespace") => namespace_create(object),
        ("", "ServiceAccount") => clean_secret_references(object),
        ("", "PersistentVolume") => {
            let created = metadata(object).get("creationTimestamp").cloned().unwrap_or_default();
            let status = child(object, "status");
            status.insert("phase".to_owned(), json!("Pending"));
            status.insert("lastPhaseTransitionTime".to_owned(), created);
        }
        ("", "PersistentVolumeClaim") => {
            drop_odd_data_source(child(object, "spec"), None);
            normalize_data_sources(child(object, "spec"));
            child(object, "status").insert("phase".to_owned(), json!("Pending"));
        }
        ("apps", "DaemonSet") => {
            metadata(object)
                .entry("annotations")
                .or_insert_with(|| json!({}))
                .as_object_mut()
                .map(|a| a.insert(TEMPLATE_GENERATION.to_owned(), json!("1")));
        }
        ("apps", "StatefulSet") => drop_max_unavailable(object),
        ("batch", "Job") => job::generate_selector(object),
        ("", "Service") => service::prepare_create(object),
        ("apiregistration.k8s.io", "APIService") => {}
        ("coordination.k8s.io", "Lease") => {
            // Coordinated leader election is off in 1.36.
            let spec = child(object, "spec");
            spec.remove("strategy");
            spec.remove("preferredHolder");
        }
        _ => {}
    }
    if generation(group, kind) != Generation::Unmanaged {
        metadata(object).insert("generation".to_owned(), json!(1));
    }
}

/// Restores fields that a request to the resource or subresource may not change, and increments the generation.
pub fn prepare_update(group: &str, kind: &str, subresource: &str, new: &mut Value, old: &Value) {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return };
    match subresource {
        "status" => status_update(group, kind, new, old),
        "finalize" => copy(new, old, "status"),
        "approval" => {
            let conditions = new.get("status").and_then(|s| s.get("conditions")).cloned();
            copy(new, old, "spec");
            copy(new, old, "status");
            if let Some(conditions) = conditions {
                child(new, "status").insert("conditions".to_owned(), conditions);
            }
        }
        "ephemeralcontainers" => pod::ephemeral_containers_update(new, old),
        "resize" => pod::resize_update(new, old),
        "binding" => {}
        _ => resource_update(group, kind, new, old),
    }
    if subresource != "status" && subresource != "approval" {
        count_generation(group, kind, new, old);
    }
}

fn status_update(group: &str, kind: &str, new: &mut Object, old: &Object) {
    copy(new, old, "spec");
    match (group, kind) {
        ("", "Pod") => pod::status_update(new, old),
        ("apps", "Deployment") => copy_metadata(new, old, &["labels"]),
        ("apiregistration.k8s.io", "APIService") => {
            copy_metadata(new, old, &["labels", "annotations", "finalizers", "ownerReferences"]);
        }
        ("storage.k8s.io", "VolumeAttachment")
        | ("resource.k8s.io", "ResourceClaim")
        | ("networking.k8s.io", "ServiceCIDR")
        | ("apiextensions.k8s.io", _) => {
            let kept =
                ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"];
            copy_metadata(new, old, &kept);
        }
        ("certificates.k8s.io", _) => {
            for condition in ["Approved", "Denied"] {
                preserve_conditions(new, old, condition);
            }
        }
        _ => {}
    }
}

fn resource_update(group: &str, kind: &str, new: &mut Object, old: &Object) {
    if resets_status(group, kind) || matches!((group, kind), ("", "Node" | "Pod")) {
        copy(new, old, "status");
    }
    match (group, kind) {
        ("", "Namespace") => {
            let finalizers = old.get("spec").and_then(|s| s.get("finalizers")).cloned();
            put(child(new, "spec"), "finalizers", finalizers);
            namespace_label(new);
        }
        ("", "Secret") if new.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() => {
            copy(new, old, "type");
        }
        ("", "ServiceAccount") => clean_secret_references(new),
        ("", "PersistentVolumeClaim") => {
            drop_odd_data_source(child(new, "spec"), old.get("spec"));
            normalize_data_sources(child(new, "spec"));
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => copy(new, old, "spec"),
        ("", "Service") => service::prepare_update(new, old),
        ("apps", "DaemonSet") => daemon_set_update(new, old),
        ("apps", "StatefulSet") => drop_max_unavailable(new),
        ("storage.k8s.io", "CSIDriver") if new.get("spec") != old.get("spec") => {
            let next = generation_of(old).wrapping_add(1);
            metadata(new).insert("generation".to_owned(), json!(next));
        }
        _ => {}
    }
}

fn count_generation(group: &str, kind: &str, new: &mut Object, old: &Object) {
    let changed = match generation(group, kind) {
        Generation::Unmanaged => return,
        Generation::Constant => false,
        Generation::On(pointers) => pointers.iter().any(|p| at(new, p) != at(old, p)),
        Generation::OnContentOrLabels => {
            let content = |o: &Object| {
                let mut o = o.clone();
                o.remove("metadata");
                o
            };
            content(new) != content(old) || at(new, "/metadata/labels") != at(old, "/metadata/labels")
        }
    };
    let next = generation_of(old).wrapping_add(i64::from(changed));
    if next > 0 {
        metadata(new).insert("generation".to_owned(), json!(next));
    }
}

/// Sets times from the clock: transitions of CSR conditions and of volume phases. Runs after [`prepare_update`].
pub fn stamp_update(group: &str, kind: &str, subresource: &str, new: &mut Value, old: &Value, now: &str) {
    match (group, kind, subresource) {
        ("certificates.k8s.io", "CertificateSigningRequest", "status" | "approval") => {
            let before = old.pointer("/status/conditions").and_then(Value::as_array);
            let conditions = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            for condition in conditions.into_iter().flatten() {
                let same = before.into_iter().flatten().find(|o| {
                    o.get("type") == condition.get("type") && o.get("status") == condition.get("status")
                });
                let transition = same
                    .and_then(|o| o.get("lastTransitionTime"))
                    .filter(|t| !t.is_null())
                    .cloned()
                    .unwrap_or_else(|| json!(now));
                if let Value::Object(condition) = condition {
                    set_unset(condition, "lastUpdateTime", json!(now));
                    set_unset(condition, "lastTransitionTime", transition);
                }
            }
        }
        ("", "PersistentVolume", "status") => {
            let of = |o: &Value, field: &str| o.pointer(&format!("/status/{field}")).cloned();
            let (phase, time) = ("phase", "lastPhaseTransitionTime");
            let given = of(new, time).filter(|t| !t.is_null());
            let stamp = match (of(new, phase) == of(old, phase), given) {
                (true, None) => of(old, time),
                (false, None) => Some(json!(now)),
                (false, given) if given == of(old, time) => Some(json!(now)),
                (_, given) => given,
            };
            if let Value::Object(new) = new {
                put(child(new, "status"), time, stamp);
            }
        }
        _ => {}
    }
}

/// Records the requester of a certificate; values in the request are ignored.
pub fn set_requester(
    object: &mut Value,
    username: &str,
    uid: &str,
    groups: &[String],
    extra: &[(String, Vec<String>)],
) {
    let Value::Object(object) = object else { return };
    let spec = child(object, "spec");
    let text = |t: &str| (!t.is_empty()).then(|| json!(t));
    put(spec, "username", text(username));
    put(spec, "uid", text(uid));
    put(spec, "groups", (!groups.is_empty()).then(|| json!(groups)));
    let extra: Object = extra.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    put(spec, "extra", (!extra.is_empty()).then_some(Value::Object(extra)));
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Creation starts with an empty status, and updates of the resource keep the old one.
fn resets_status(group: &str, kind: &str) -> bool {
    // The status of a Node may be set on creation: kubelets register that way.
    (group, kind) != ("", "Node")
        && kinds::kinds()
            .iter()
            .any(|k| k.group == group && k.kind == kind && k.subresource("status").is_some())
}

fn reset_status(group: &str, kind: &str, object: &mut Object) {
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let status = table()
        .kind(group, version, kind)
        .and_then(|id| table().field(id, "status"))
        .map(|field| zero::zero(table(), &field.expr));
    put(object, "status", status.filter(|s| !s.is_null()));
}

fn namespace_create(object: &mut Object) {
    child(object, "status").insert("phase".to_owned(), json!("Active"));
    let spec = child(object, "spec");
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.contains(&json!("kubernetes"))
    {
        finalizers.push(json!("kubernetes"));
    }
    namespace_label(object);
}

/// The label follows a generated name, and cannot be removed.
fn namespace_label(object: &mut Object) {
    let name = metadata(object).get("name").cloned().unwrap_or_default();
    child(metadata(object), "labels").insert("kubernetes.io/metadata.name".to_owned(), name);
}

fn clean_secret_references(object: &mut Object) {
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = secret.get("name").cloned();
        *secret = json!({});
        if let (Some(name), Value::Object(secret)) = (name, secret) {
            secret.insert("name".to_owned(), name);
        }
    }
}

/// Claims have claims and snapshots as sources; other sources are dropped, unless the newer field has the same value
/// or the old object has it already.
fn drop_odd_data_source(spec: &mut Object, old: Option<&Value>) {
    let Some(source) = spec.get("dataSource").filter(|s| !s.is_null()) else { return };
    let kept = old.is_some_and(|o| o.get("dataSource") == Some(source))
        || spec.get("dataSourceRef").is_some_and(|r| !r.is_null());
    let of = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
    let known = matches!(
        (of("apiGroup"), of("kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if !known && !kept {
        spec.remove("dataSource");
    }
}

/// The two source fields of a claim are kept in sync.
fn normalize_data_sources(spec: &mut Object) {
    let present = |spec: &Object, key: &str| spec.get(key).filter(|v| !v.is_null()).cloned();
    match (present(spec, "dataSource"), present(spec, "dataSourceRef")) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(reference))
            if reference.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty() =>
        {
            let mut source = reference;
            if let Value::Object(source) = &mut source {
                source.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// The field belongs to a feature gate that is off in 1.36.
fn drop_max_unavailable(set: &mut Object) {
    let mut path = ["spec", "updateStrategy", "rollingUpdate"].into_iter();
    if let Some(rolling) = path.try_fold(set, |at, key| at.get_mut(key)?.as_object_mut()) {
        rolling.remove("maxUnavailable");
    }
}

/// The template's generation is in an annotation since `apps/v1`.
fn daemon_set_update(new: &mut Object, old: &Object) {
    let before: i64 = old
        .get("metadata")
        .and_then(|m| m.get("annotations"))
        .and_then(|a| a.get(TEMPLATE_GENERATION))
        .and_then(Value::as_str)
        .and_then(|t| t.parse().ok())
        .unwrap_or(0);
    let changed = at(new, "/spec/template") != at(old, "/spec/template");
    let annotations = child(metadata(new), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), json!((before + i64::from(changed)).to_string()));
}

/// Conditions that only the approval subresource may change are restored.
fn preserve_conditions(new: &mut Object, old: &Object, kind: &str) {
    let of_kind = |o: &&Value| o.get("type").and_then(Value::as_str) == Some(kind);
    let before: Vec<Value> = at(old, "/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(of_kind)
        .cloned()
        .collect();
    let Some(Value::Array(conditions)) = child(new, "status").get_mut("conditions") else { return };
    let mut slots: Vec<&mut Value> =
        conditions.iter_mut().filter(|c| c.get("type").and_then(Value::as_str) == Some(kind)).collect();
    if slots.len() == before.len() {
        for (slot, condition) in slots.iter_mut().zip(before) {
            **slot = condition;
        }
    }
}

fn generation_of(object: &Object) -> i64 {
    at(object, "/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}

fn at<'a>(object: &'a Object, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.split('/').skip(1);
    let mut current = object.get(parts.next()?)?;
    for part in parts {
        current = current.get(part)?;
    }
    Some(current)
}

fn metadata(object: &mut Object) -> &mut Object {
    child(object, "metadata")
}

fn child<'a>(object: &'a mut Object, key: &str) -> &'a mut Object {
    let slot = object.entry(key).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    match slot {
        Value::Object(inner) => inner,
        _ => unreachable!("the slot holds an object"),
    }
}

fn put(object: &mut Object, key: &str, value: Option<Value>) {
    match value {
        Some(value) => object.insert(key.to_owned(), value),
        None => object.remove(key),
    };
}

fn set_unset(object: &mut Object, key: &str, value: Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}

fn copy(new: &mut Object, old: &Object, key: &str) {
    put(new, key, old.get(key).cloned());
}

fn copy_metadata(new: &mut Object, old: &Object, keys: &[&str]) {
    let Some(Value::Object(before)) = old.get("metadata") else { return };
    let after = metadata(new);
    for key in keys {
        put(after, key, before.get(*key).cloned());
    }
}

#[cfg(test)]
mod tests;
