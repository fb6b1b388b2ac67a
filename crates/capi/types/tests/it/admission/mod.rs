//! Admission rules: each with input it accepts and input it rejects, with the message a user sees.

mod addons;
mod cluster;
mod cluster_class;
mod control_plane;
mod extension_config;
mod ipam;
mod kubeadm_config;
mod machine;
mod machine_deployment;
mod machine_health_check;

use capstan_capi_types::admission::{Features, pool_differs_from_claim, rules, validate_scale};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use serde_json::{Value, json};

/// Applies a merge patch.
fn patched(base: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = base.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            let value = patched(fields.get(key).unwrap_or(&Value::Null), change);
            fields.insert(key.clone(), value);
        }
    }
    Value::Object(fields)
}

fn errors_of(group: &str, kind: &str, new: &Value, old: Option<&Value>, features: &Features) -> Vec<String> {
    let rules = rules(group, kind).expect("rules");
    let errors = (rules.validate)(new, old, features).expect("an object of the kind");
    errors.iter().map(ToString::to_string).collect()
}

/// Each case: a patch, and the errors of the patched object; the object itself has none.
fn created(group: &str, kind: &str, base: &Value, cases: &[(Value, &[&str])]) {
    let features = Features::ALL;
    assert_eq!(errors_of(group, kind, base, None, &features), Vec::<String>::new(), "{kind}");
    for (patch, expected) in cases {
        assert_eq!(
            errors_of(group, kind, &patched(base, patch), None, &features),
            *expected,
            "{kind} {patch}"
        );
    }
}

/// Each case: a patch of the stored object, and the errors of the update.
fn updated(group: &str, kind: &str, old: &Value, cases: &[(Value, &[&str])]) {
    let features = Features::ALL;
    for (patch, expected) in cases {
        let new = patched(old, patch);
        assert_eq!(errors_of(group, kind, &new, Some(old), &features), *expected, "{kind} {patch}");
    }
}

fn defaulted(group: &str, kind: &str, object: Value, old: Option<&Value>) -> Value {
    let mut object = object;
    (rules(group, kind).expect("rules").default)(&mut object, old).expect("defaults");
    object
}

const CORE: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const ADDONS: &str = "addons.cluster.x-k8s.io";
const IPAM: &str = "ipam.cluster.x-k8s.io";
const RUNTIME: &str = "runtime.cluster.x-k8s.io";

const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn reference(kind: &str) -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "one" })
}

fn cluster() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": { "infrastructureRef": reference("SimCluster"), "controlPlaneRef": reference("Sim") },
    })
}

fn with_topology() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": { "topology": { "classRef": { "name": "small" }, "version": "v1.30.0" } },
    })
}

fn machine() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": reference("SimMachine"),
        },
    })
}

fn machines(kind: &str) -> Value {
    let mut object = json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "replicas": 1,
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": machine()["spec"] },
        },
    });
    object["kind"] = kind.into();
    object
}

fn control_plane() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "replicas": 3,
            "version": "v1.30.0",
            "machineTemplate": { "spec": { "infrastructureRef": reference("SimMachineTemplate") } },
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
        },
    })
}
