//! Helpers for tests of decisions.

use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Controller, Decision};
use capstan_object::{Condition, Conditions as _, ObjectMeta};
use serde_json::Value;

use crate::Infrastructure;

pub use capstan_controller::testing::{calls, effects, look, now};

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
