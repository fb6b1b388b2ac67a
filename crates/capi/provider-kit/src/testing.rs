//! For tests of decisions.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Controller, Decision, Effect, Look};
use capstan_object::{Condition, Conditions as _, ObjectMeta};
use jiff::Timestamp;
use serde_json::Value;

use crate::Infrastructure;

/// The moment at which tests look.
///
/// # Panics
///
/// Never: it is within what a timestamp holds.
#[expect(clippy::expect_used, reason = "a constant within range")]
pub fn now() -> Timestamp {
    Timestamp::from_second(1_000_000_000).expect("a moment")
}

/// A look at an object [`now`].
pub fn look<C: Controller>(object: C::Kind, seen: C::Seen) -> Look<C> {
    Look::new(Arc::new(object), seen, now())
}

/// The object, deleted.
pub fn deleted<T: capstan_object::Object>(mut object: T) -> T {
    object.metadata_mut().deletion_timestamp = Some(now().into());
    object
}

/// The calls that were decided.
///
/// # Panics
///
/// If anything but calls was.
#[expect(clippy::panic, reason = "for tests")]
pub fn calls<C: Controller>(decision: &Decision<C>) -> Vec<C::Call> {
    let call = |effect: &Effect<C::Call>| match effect {
        Effect::Call(call) => call.clone(),
        other => panic!("no call: {}", other.summary()),
    };
    decision.effects.iter().map(|planned| call(&planned.effect)).collect()
}

/// Everything that was decided, in a few words each.
pub fn effects<C: Controller>(decision: &Decision<C>) -> Vec<String> {
    decision.effects.iter().map(|planned| planned.effect.summary()).collect()
}

/// The condition Ready that was decided.
///
/// # Panics
///
/// If there is none.
#[expect(clippy::expect_used, reason = "for tests")]
pub fn ready<C: Controller<Kind: Infrastructure>>(decision: &Decision<C>) -> Condition {
    decision.object.clone().conditions_mut().condition("Ready").expect("Ready").clone()
}

/// A Machine `ns/m` whose boot data is there.
pub fn machine() -> Machine {
    let mut machine = Machine { metadata: ObjectMeta::named("ns", "m"), ..Machine::default() };
    machine.spec.bootstrap.data_secret_name = Some("m-data".to_owned());
    machine
}

/// A Cluster whose infrastructure is there and whose control plane is initialized.
pub fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.status.initialization.infrastructure_provisioned = Some(true);
    cluster.status.initialization.control_plane_initialized = Some(true);
    cluster
}

/// Checks what clusterctl and the core expect of a provider's definitions.
///
/// # Panics
///
/// If it does not hold.
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
