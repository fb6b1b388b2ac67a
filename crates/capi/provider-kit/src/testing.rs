//! Helpers for tests of decisions, and of clusters on a simulated cloud.

use capstan_capi_types::core::{Cluster, Machine, MachineHealthCheck};
use capstan_controller::{Controller, Decision, KindName};
use capstan_object::{Condition, Conditions as _, Object as _, ObjectMeta};
use serde_json::{Value, json};

use crate::Infrastructure;

pub use capstan_controller::testing::{best_efforts, calls, effects, look, now};

/// The fields of `capstan set` that are not in the spec of a kind in its stored version. Templates of machines have the
/// spec of the machines.
pub fn unknown_fields(definitions: &[Value], kind: &str, fields: &str) -> Vec<String> {
    let of_kind = definitions.iter().find(|it| it["spec"]["names"]["kind"] == kind);
    let mut versions = of_kind.and_then(|it| it["spec"]["versions"].as_array()).into_iter().flatten();
    let stored = versions.find(|version| version["storage"] == true);
    let spec = stored.map(|version| &version["schema"]["openAPIV3Schema"]["properties"]["spec"]);
    let paths =
        fields.split_whitespace().map(|field| field.trim_matches('\'').split('=').next().unwrap_or(""));
    let is_known = |path: &str| path.split('.').try_fold(spec?, below).map(drop);
    paths.filter(|path| is_known(path).is_none()).map(str::to_owned).collect()
}

/// The schema of a field, of a key of a map, or of an entry of a list.
fn below<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let field = schema["properties"].get(name);
    field.or_else(|| schema.get("additionalProperties")).or_else(|| schema.get("items"))
}

/// The object with a deletion timestamp.
pub fn deleted<T: capstan_object::Object>(mut object: T) -> T {
    object.metadata_mut().deletion_timestamp = Some(now().into());
    object
}

/// The decided `Ready` condition.
///
/// # Panics
///
/// If there is none.
#[expect(clippy::expect_used, reason = "for tests")]
pub fn ready<C: Controller<Kind: Infrastructure>>(decision: &Decision<C>) -> Condition {
    decision.object.clone().conditions_mut().condition("Ready").expect("Ready").clone()
}

/// A Machine `ns/m` with boot data.
pub fn machine() -> Machine {
    let mut machine = Machine { metadata: ObjectMeta::named("ns", "m"), ..Machine::default() };
    machine.spec.bootstrap.data_secret_name = Some("m-data".to_owned());
    machine
}

/// A Cluster with provisioned infrastructure and an initialized control plane.
pub fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.status.initialization.infrastructure_provisioned = Some(true);
    cluster.status.initialization.control_plane_initialized = Some(true);
    cluster
}

/// MachineHealthChecks of a cluster's control plane and of a deployment: a machine is replaced when its Node was not ready
/// for two minutes, or is not there after ten.
pub fn health_checks(namespace: &str, cluster: &str, deployment: &str) -> [(KindName, Value); 2] {
    let lost = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": 120});
    let workers = json!({"matchLabels": {"cluster.x-k8s.io/deployment-name": deployment}});
    let control_plane =
        json!({"matchExpressions": [{"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"}]});
    let check = |(name, selector): (&str, Value)| {
        let body = json!({
            "apiVersion": MachineHealthCheck::KIND.api_version(), "kind": "MachineHealthCheck",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterName": cluster, "selector": selector, "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [lost("Unknown"), lost("False")],
            }},
        });
        (KindName::of::<MachineHealthCheck>(), body)
    };
    [(cluster, control_plane), (deployment, workers)].map(check)
}

/// Checks the contract requirements of a provider's definitions.
///
/// # Panics
///
/// If one is violated.
pub fn assert_follow_the_contract(definitions: &[Value], version: &str, plurals: &[&str]) {
    let names: Vec<&str> =
        definitions.iter().filter_map(|definition| definition["metadata"]["name"].as_str()).collect();
    let expected: Vec<String> =
        plurals.iter().map(|plural| format!("{plural}.infrastructure.cluster.x-k8s.io")).collect();
    assert_eq!(names, expected);
    for definition in definitions {
        assert_eq!(definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], version);
        assert_eq!(definition["spec"]["names"]["categories"][0], "cluster-api");
        assert_eq!(definition["spec"]["versions"][0]["storage"], true);
    }
}
