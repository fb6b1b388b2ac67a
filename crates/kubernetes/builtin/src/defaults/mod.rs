//! Defaults of built-in kinds. As upstream, they belong to Go types rather than to kinds: the table has where a type
//! occurs, the functions here its defaults. Then come the few fields that upstream changes on conversion to its
//! internal types (`stringData`, `serviceAccount`…).

mod autoscaling;
mod pod;
mod service;
mod workload;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::quantity::Quantity;
use crate::table::{Expr, Shape, Table, TypeId, table};

type Object = Map<String, Value>;

/// Applies defaults to a built-in object, as kube-apiserver stores it. The object must have been decoded by
/// [`crate::decode`]; other kinds are unchanged.
pub fn apply(group: &str, version: &str, kind: &str, object: &mut Value) {
    if let Some(id) = table().kind(group, version, kind) {
        visit(table(), id, object);
    }
}

/// Types with default functions, and types that contain them.
static CONCERNED: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let table = table();
    let mut out: Vec<bool> = table
        .types()
        .map(|(_, ty)| {
            rule(ty.name).is_some()
                || ty.name == "core/v1.ResourceList"
                || ty.fields.iter().any(|f| f.default.as_ref().is_some_and(meaningful))
        })
        .collect();
    loop {
        let mut grew = false;
        for (id, ty) in table.types() {
            let below = |expr: &Expr| reaches(expr, &out);
            let holds = match &ty.shape {
                Shape::Alias { under, .. } => below(under),
                _ => ty.fields.iter().any(|f| below(&f.expr)),
            };
            if holds && !out[id.index()] {
                out[id.index()] = true;
                grew = true;
            }
        }
        if !grew {
            return out;
        }
    }
});

fn reaches(expr: &Expr, concerned: &[bool]) -> bool {
    match expr {
        Expr::Named(id) => concerned[id.index()],
        Expr::Pointer(inner) | Expr::List(inner) | Expr::Map(_, inner) => reaches(inner, concerned),
        _ => false,
    }
}

/// A default that is not Go's zero value.
fn meaningful(default: &Value) -> bool {
    !empty(Some(default))
}

fn visit(table: &Table, id: TypeId, value: &mut Value) {
    if !CONCERNED[id.index()] {
        return;
    }
    let ty = table.get(id);
    if ty.name == "core/v1.ResourceList" {
        return round_resources(value);
    }
    if let Shape::Alias { under, .. } = &ty.shape {
        return visit_expr(table, under, value);
    }
    if let Value::Object(object) = value {
        if let Some(rule) = rule(ty.name) {
            rule(object);
        }
        for field in table.flat_fields(id) {
            if let Some(default) = field.default.as_ref().filter(|d| meaningful(d)) {
                set(object, field.json, default.clone());
            }
            if let Some(child) = object.get_mut(field.json) {
                visit_expr(table, &field.expr, child);
            }
        }
    }
}

fn visit_expr(table: &Table, expr: &Expr, value: &mut Value) {
    match expr {
        Expr::Named(id) => visit(table, *id, value),
        Expr::Pointer(inner) => visit_expr(table, inner, value),
        Expr::List(inner) if reaches(inner, &CONCERNED) => {
            for item in value.as_array_mut().into_iter().flatten() {
                visit_expr(table, inner, item);
            }
        }
        Expr::Map(_, inner) if reaches(inner, &CONCERNED) => {
            for (_, item) in value.as_object_mut().into_iter().flatten() {
                visit_expr(table, inner, item);
            }
        }
        _ => {}
    }
}

/// Resources have at most milli precision.
fn round_resources(value: &mut Value) {
    for (_, amount) in value.as_object_mut().into_iter().flatten() {
        if let Some(rounded) =
            amount.as_str().and_then(|text| Quantity::parse(text).ok()).and_then(|q| q.rounded_to_milli())
        {
            *amount = Value::String(rounded.to_string());
        }
    }
}

/// Absent, null, or Go's zero value.
fn empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(Value::Number(n)) => n.as_f64() == Some(0.0),
        Some(Value::Bool(b)) => !b,
        Some(Value::Array(a)) => a.is_empty(),
        Some(Value::Object(o)) => o.is_empty(),
    }
}

/// Sets a field that is absent, null or an empty string.
fn set(object: &mut Object, key: &str, value: impl Into<Value>) {
    let unset = match object.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(_) => false,
    };
    if unset {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets a number that is absent or zero.
fn set_number(object: &mut Object, key: &str, value: i64) {
    if empty(object.get(key)) {
        object.insert(key.to_owned(), json!(value));
    }
}

/// The object in a field, created if absent.
fn child<'a>(object: &'a mut Object, key: &str) -> &'a mut Object {
    let slot = object.entry(key).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    match slot {
        Value::Object(inner) => inner,
        // Created just above.
        _ => unreachable!("the slot holds an object"),
    }
}

fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The default function of a type.
fn rule(name: &str) -> Option<fn(&mut Object)> {
    Some(match name {
        "autoscaling/v1.HorizontalPodAutoscalerSpec" => |o| set(o, "minReplicas", 1),
        "autoscaling/v2.HorizontalPodAutoscalerSpec" => autoscaling::spec,
        "core/v1.Namespace" => namespace,
        "core/v1.NamespaceStatus" => |o| set(o, "phase", "Active"),
        "core/v1.Secret" => secret,
        "core/v1.NodeStatus" => node_status,
        "core/v1.NodeSpec" => |o| sync_plural(o, "podCIDR", "podCIDRs", None),
        "core/v1.PersistentVolume" => persistent_volume,
        "core/v1.PersistentVolumeClaim" => |o| set(child(o, "status"), "phase", "Pending"),
        "core/v1.PersistentVolumeClaimSpec" => |o| set(o, "volumeMode", "Filesystem"),
        "core/v1.EndpointPort" => |o| set(o, "protocol", "TCP"),
        "core/v1.LimitRangeItem" => limit_range_item,
        "core/v1.ReplicationController" => replication_controller,
        "core/v1.Service" => service::service,
        "core/v1.Pod" => pod::pod,
        "core/v1.PodSpec" => pod::pod_spec,
        "core/v1.PodStatus" => |o| sync_plural(o, "podIP", "podIPs", Some("ip")),
        "core/v1.Volume" => pod::volume,
        "core/v1.Container" | "core/v1.EphemeralContainer" => pod::container,
        "core/v1.Probe" => pod::probe,
        "core/v1.HTTPGetAction" => pod::http_get,
        "core/v1.ObjectFieldSelector" => |o| set(o, "apiVersion", "v1"),
        "core/v1.SecretVolumeSource"
        | "core/v1.ConfigMapVolumeSource"
        | "core/v1.DownwardAPIVolumeSource"
        | "core/v1.ProjectedVolumeSource" => |o| {
            set(o, "defaultMode", 0o644);
        },
        "core/v1.ServiceAccountTokenProjection" => |o| set(o, "expirationSeconds", 3600),
        "core/v1.HostPathVolumeSource" => |o| {
            o.entry("type").or_insert_with(|| json!(""));
        },
        "apps/v1.Deployment" => workload::deployment,
        "apps/v1.DaemonSet" => workload::daemon_set,
        "apps/v1.StatefulSet" => workload::stateful_set,
        "apps/v1.ReplicaSet" => |o| set(child(o, "spec"), "replicas", 1),
        "batch/v1.Job" => workload::job,
        "batch/v1.CronJobSpec" => workload::cron_job_spec,
        "batch/v1.PodFailurePolicyOnPodConditionsPattern" => |o| set(o, "status", "True"),
        "rbac/v1.ClusterRoleBinding" | "rbac/v1.RoleBinding" => {
            |o| set(child(o, "roleRef"), "apiGroup", RBAC)
        }
        "rbac/v1.Subject" => |o| {
            if matches!(text(o, "kind"), "User" | "Group") {
                set(o, "apiGroup", RBAC);
            }
        },
        "admissionregistration/v1.ValidatingWebhook" => webhook,
        "admissionregistration/v1.MutatingWebhook" => |o| {
            webhook(o);
            set(o, "reinvocationPolicy", "Never");
        },
        "admissionregistration/v1.Rule"
        | "admissionregistration/v1.RuleWithOperations"
        | "admissionregistration/v1.NamedRuleWithOperations" => |o| set(o, "scope", "*"),
        "admissionregistration/v1.ServiceReference"
        | "apiextensions/v1.ServiceReference"
        | "apiregistration/v1.ServiceReference" => |o| set(o, "port", 443),
        "admissionregistration/v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration/v1.MutatingAdmissionPolicySpec" => |o| set(o, "failurePolicy", "Fail"),
        "admissionregistration/v1.MatchResources" => match_resources,
        "apiextensions/v1.CustomResourceDefinition" => custom_resource_definition,
        "storage/v1.StorageClass" => |o| {
            set(o, "reclaimPolicy", "Delete");
            set(o, "volumeBindingMode", "Immediate");
        },
        "storage/v1.CSIDriverSpec" => csi_driver_spec,
        "resource/v1.ExactDeviceRequest" | "resource/v1.DeviceSubRequest" => |o| {
            set(o, "allocationMode", "ExactCount");
            if text(o, "allocationMode") == "ExactCount" {
                set_number(o, "count", 1);
            }
        },
        "scheduling/v1.PriorityClass" => |o| set(o, "preemptionPolicy", "PreemptLowerPriority"),
        "discovery/v1.EndpointPort" => |o| {
            o.entry("name").or_insert_with(|| json!(""));
            set(o, "protocol", "TCP");
        },
        "networking/v1.NetworkPolicyPort" => |o| set(o, "protocol", "TCP"),
        "networking/v1.NetworkPolicySpec" => network_policy_spec,
        "networking/v1.IngressClassParametersReference" => |o| set(o, "scope", "Cluster"),
        "authentication/v1.TokenRequestSpec" => |o| set(o, "expirationSeconds", 3600),
        "flowcontrol/v1.FlowSchemaSpec" => |o| set_number(o, "matchingPrecedence", 1000),
        "flowcontrol/v1.ExemptPriorityLevelConfiguration" => |o| {
            set(o, "nominalConcurrencyShares", 0);
            set(o, "lendablePercent", 0);
        },
        "flowcontrol/v1.LimitedPriorityLevelConfiguration" => |o| {
            set(o, "nominalConcurrencyShares", 30);
            set(o, "lendablePercent", 0);
        },
        "flowcontrol/v1.QueuingConfiguration" => |o| {
            set_number(o, "handSize", 8);
            set_number(o, "queues", 64);
            set_number(o, "queueLengthLimit", 50);
        },
        _ => return None,
    })
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn namespace(object: &mut Object) {
    let name = object.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str);
    if let Some(name) = name.filter(|n| !n.is_empty()).map(str::to_owned) {
        let labels = child(child(object, "metadata"), "labels");
        labels.insert("kubernetes.io/metadata.name".to_owned(), Value::String(name));
    }
}

fn secret(object: &mut Object) {
    set(object, "type", "Opaque");
    if let Some(Value::Object(texts)) = object.remove("stringData") {
        let data = child(object, "data");
        for (key, text) in texts {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, Value::String(encoded));
        }
    }
}

fn node_status(object: &mut Object) {
    if object.get("allocatable").is_none_or(Value::is_null)
        && let Some(capacity) = object.get("capacity").filter(|c| !c.is_null()).cloned()
    {
        object.insert("allocatable".to_owned(), capacity);
    }
}

/// A singular field that became a list stays equal to the first item.
fn sync_plural(object: &mut Object, one: &str, many: &str, inner: Option<&str>) {
    let wrap = |text: &str| match inner {
        Some(key) => json!([{ key: text }]),
        None => json!([text]),
    };
    let first = object.get(many).and_then(|m| m.get(0)).and_then(|first| match inner {
        Some(key) => first.get(key)?.as_str().map(str::to_owned),
        None => first.as_str().map(str::to_owned),
    });
    let single = text(object, one).to_owned();
    match (first, single.is_empty()) {
        (None, true) => {}
        (None, false) => {
            object.insert(many.to_owned(), wrap(&single));
        }
        (Some(first), _) if first == single => {}
        // If both differ, upstream uses the old field, so that old clients can still write.
        (Some(_), false) => {
            object.insert(many.to_owned(), wrap(&single));
        }
        (Some(first), true) => {
            object.insert(one.to_owned(), Value::String(first));
        }
    }
}

fn persistent_volume(object: &mut Object) {
    set(child(object, "status"), "phase", "Pending");
    let spec = child(object, "spec");
    set(spec, "persistentVolumeReclaimPolicy", "Retain");
    set(spec, "volumeMode", "Filesystem");
}

fn limit_range_item(object: &mut Object) {
    if text(object, "type") != "Container" {
        return;
    }
    let entries =
        |object: &Object, key: &str| object.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut default = entries(object, "default");
    for (key, value) in entries(object, "max") {
        default.entry(key).or_insert(value);
    }
    let mut request = entries(object, "defaultRequest");
    for (key, value) in default.clone().into_iter().chain(entries(object, "min")) {
        request.entry(key).or_insert(value);
    }
    for (key, map) in [("default", default), ("defaultRequest", request)] {
        if !map.is_empty() {
            object.insert(key.to_owned(), Value::Object(map));
        }
    }
}

fn replication_controller(object: &mut Object) {
    let labels = object.get("spec").and_then(|s| s.pointer("/template/metadata/labels")).cloned();
    if let Some(labels) = labels.filter(|l| !empty(Some(l))) {
        if empty(object.get("spec").and_then(|s| s.get("selector"))) {
            child(object, "spec").insert("selector".to_owned(), labels.clone());
        }
        if empty(object.get("metadata").and_then(|m| m.get("labels"))) {
            child(object, "metadata").insert("labels".to_owned(), labels);
        }
    }
}

fn match_resources(object: &mut Object) {
    set(object, "matchPolicy", "Equivalent");
    set(object, "namespaceSelector", json!({}));
    set(object, "objectSelector", json!({}));
}

fn webhook(object: &mut Object) {
    set(object, "failurePolicy", "Fail");
    match_resources(object);
    set(object, "timeoutSeconds", 10);
}

fn custom_resource_definition(object: &mut Object) {
    let spec = child(object, "spec");
    let names = child(spec, "names");
    let kind = text(names, "kind").to_owned();
    if !kind.is_empty() {
        set(names, "singular", kind.to_lowercase());
        set(names, "listKind", format!("{kind}List"));
    }
    set(spec, "conversion", json!({"strategy": "None"}));
    let storage = spec
        .get("versions")
        .and_then(Value::as_array)
        .and_then(|versions| versions.iter().find(|v| v.get("storage") == Some(&Value::Bool(true))))
        .and_then(|v| v.get("name").cloned());
    if let Some(name) = storage
        && empty(object.get("status").and_then(|s| s.get("storedVersions")))
    {
        child(object, "status").insert("storedVersions".to_owned(), json!([name]));
    }
}

fn csi_driver_spec(object: &mut Object) {
    set(object, "attachRequired", true);
    for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set(object, key, false);
    }
    set(object, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if empty(object.get("volumeLifecycleModes")) {
        object.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
    }
}

fn network_policy_spec(object: &mut Object) {
    if empty(object.get("policyTypes")) {
        let egress = !empty(object.get("egress"));
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        object.insert("policyTypes".to_owned(), types);
    }
}

#[cfg(test)]
mod tests;
