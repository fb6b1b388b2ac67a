//! The objects that every cluster has from the start.

use std::sync::Arc;

use capstan_schema::bounded::Texts;
use serde_json::{Value, json};

use crate::auth::rbac::{self, Reconciliation};
use crate::call::Call;
use crate::controllers::{flow_control, service_addresses};
use crate::health::Stage;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::create_object;
use crate::pipeline::{Change, Step, change};
use crate::services::{DEFAULT_CIDR, ServiceRange};
use crate::status::Result;
use crate::verbs::delete::delete_object;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Reconciles the bootstrap policy and the priority levels. Idempotent; runs at every start, before [`objects`].
pub(crate) async fn policy(parts: &Arc<ServerParts>) -> Result<()> {
    for object in rbac::bootstrap_policy() {
        reconcile(parts, object).await?;
    }
    parts.startup.reach(Stage::Roles);
    flow_control::ensure(parts).await
}

/// Creates other missing objects. Idempotent; runs at every start.
pub(crate) async fn objects(parts: &Arc<ServerParts>) -> Result<()> {
    for namespace in NAMESPACES {
        ensure(
            parts,
            "",
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )
        .await?;
    }
    parts.startup.reach(Stage::Namespaces);
    if parts.pod_admission {
        for class in system_priority_classes() {
            ensure(parts, "scheduling.k8s.io", "priorityclasses", class).await?;
        }
    }
    parts.startup.reach(Stage::PriorityClasses);
    service_objects(parts).await?;
    parts.startup.reach(Stage::Services);
    Ok(())
}

/// The range of cluster IPs and the `kubernetes` Service.
pub(crate) async fn service_objects(parts: &Arc<ServerParts>) -> Result<()> {
    let Some(services) = &parts.services else {
        return ensure(parts, "", "services", kubernetes_service(parts)).await;
    };
    service_range(parts, services.range()).await?;
    // A crash may have left the address without its Service.
    let address = services.range().first().to_string();
    service_addresses::check_address(parts, &address).await?;
    match ensure(parts, "", "services", kubernetes_service(parts)).await {
        // Somebody has taken the address: the others work without this Service, and it is created when it is free.
        Err(status) if status.reason == "Invalid" => {
            tracing::warn!(error = %status, "the Service kubernetes cannot be created");
            Ok(())
        }
        other => other,
    }
}

/// The default ServiceCIDR with its condition. As upstream, one of another range is left alone: Services have its
/// addresses.
async fn service_range(parts: &Arc<ServerParts>, range: ServiceRange) -> Result<()> {
    let range = range.to_string();
    let object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": DEFAULT_CIDR},
        "spec": {"cidrs": [range]},
    });
    ensure(parts, "networking.k8s.io", "servicecidrs", object.clone()).await?;
    let Some(call) = call(parts, "networking.k8s.io", "servicecidrs", &object) else { return Ok(()) };
    let Some(entry) = parts.store.get(&call.resource().bucket, &call.key()) else { return Ok(()) };
    let stored = call.load(&entry).await?;
    if stored["spec"]["cidrs"] != json!([range]) {
        let stored = &stored["spec"]["cidrs"];
        tracing::warn!(
            %stored, configured = range,
            "the ServiceCIDR kubernetes has another range than configured, and is kept"
        );
        return Ok(());
    }
    let known = stored["status"]["conditions"].as_array().into_iter().flatten();
    if stored.is_terminating() || known.into_iter().any(|c| c["type"] == "Ready" && c["status"] != "Unknown")
    {
        return Ok(());
    }
    let options = WriteOptions {
        field_manager: "kubernetes-service-cidr-controller".into(),
        force: Some(true),
        ..WriteOptions::default()
    };
    match change(&call.on("status"), &RangeReady, &options, WriteKind::Apply).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(()),
    }
}

struct RangeReady;

impl Change for RangeReady {
    fn step(&self, call: &Call, _: &Value) -> Result<Step> {
        Ok(Step::Apply(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": call.name()},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "message": "Kubernetes default Service CIDR is ready",
                "lastTransitionTime": call.parts.env.now_rfc3339(),
            }]},
        })))
    }
}

/// The classes of Pods that a cluster cannot work without.
fn system_priority_classes() -> [Value; 2] {
    let class = |name: &str, value: u32, what: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": format!("Used for system critical pods that must {what}."),
        })
    };
    [
        class(
            "system-cluster-critical",
            2_000_000_000,
            "run in the cluster, but can be moved to another node if necessary",
        ),
        class("system-node-critical", 2_000_001_000, "not be moved from their current node"),
    ]
}

/// The `kubernetes` Service, with the first address of the service range.
fn kubernetes_service(parts: &ServerParts) -> Value {
    let range = parts.services.as_ref().map_or_else(ServiceRange::default, |services| services.range());
    let address = range.first().to_string();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address, "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
    })
}

async fn ensure(parts: &Arc<ServerParts>, group: &str, plural: &str, object: Value) -> Result<()> {
    let Some(call) = call(parts, group, plural, &object) else { return Ok(()) };
    match call.parts.store.get(&call.resource().bucket, &call.key()) {
        Some(_) => Ok(()),
        None => create(&call, object).await,
    }
}

/// Reconciles one role or binding of the bootstrap policy.
async fn reconcile(parts: &Arc<ServerParts>, expected: &Value) -> Result<()> {
    let plural = format!("{}s", expected["kind"].as_str().unwrap_or_default().to_lowercase());
    let Some(call) = call(parts, "rbac.authorization.k8s.io", &plural, expected) else { return Ok(()) };
    let existing = match call.parts.store.get(&call.resource().bucket, &call.key()) {
        Some(entry) => Some(call.load(&entry).await?),
        None => None,
    };
    match rbac::reconcile(existing.as_ref(), &required(&call, existing.as_ref(), expected)) {
        Reconciliation::Nothing => Ok(()),
        Reconciliation::Create(object) => create(&call, object).await,
        Reconciliation::Update(_) => {
            let missing = Missing(expected);
            change(&call, &missing, &WriteOptions::default(), WriteKind::Update).await.map(|_| ())
        }
        Reconciliation::Recreate(object) => {
            delete_object(&call, &call.key(), &DeleteOptions::default()).await?;
            create(&call, object).await
        }
    }
}

/// The required content of a stored object. The rules of an existing aggregated role are left to the aggregation
/// controller.
fn required(call: &Call, existing: Option<&Value>, expected: &Value) -> Value {
    let mut expected = expected.clone();
    // With defaults, as in stored objects, or each start would find them missing.
    let _ = crate::strategy::normalise(call.resource(), &mut expected, &mut Texts::default());
    if existing.is_some() && expected.get("aggregationRule").is_some() {
        expected["rules"] = Value::Null;
    }
    expected
}

/// Missing content of the bootstrap policy.
struct Missing<'a>(&'a Value);

impl Change for Missing<'_> {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        Ok(match rbac::reconcile(Some(current), &required(call, Some(current), self.0)) {
            Reconciliation::Update(object) => Step::Write { object, manager: call.manager("") },
            _ => Step::Edit(current.clone()),
        })
    }
}

/// An internal request for an object.
fn call(parts: &Arc<ServerParts>, group: &str, plural: &str, object: &Value) -> Option<Call> {
    let registry = parts.registry.load_full();
    let resource = registry.find(group, "v1", plural)?.clone();
    Some(parts.internal_call("system:apiserver", resource, object.namespace(), object.name()))
}

async fn create(call: &Call, mut object: Value) -> Result<()> {
    // Objects built here have only known fields; this sets the defaults.
    let _ = crate::strategy::normalise(call.resource(), &mut object, &mut Texts::default());
    let object = crate::ownership::update(call, None, object, &call.manager("")).await?;
    match create_object(call, object, &WriteOptions::default(), WriteKind::Create).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}
