use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::testing::effects;
use capstan_controller::{Decision, Look};
use capstan_object::{Conditions, OwnerReference};
use jiff::SignedDuration;
use serde_json::Value;

use super::token::{self, TokenState};
use super::*;
use crate::certificates::{KeyPair, KeySettings, Purpose, SeededKeys};
use crate::testing::{now, object};
use capstan_capi_core::secret::{ConfigMap, Secret};

fn config(spec: &str) -> KubeadmConfig {
    object(&format!(
        "metadata: {{name: blue-cp-1, namespace: fleet, uid: config-uid, generation: 1}}\nspec: {spec}\n"
    ))
}

fn cluster(initialized: bool, control_plane: bool) -> Cluster {
    let mut cluster = crate::testing::cluster();
    cluster.status.initialization.infrastructure_provisioned = Some(true);
    if initialized {
        cluster.status.conditions = object(
            "[{type: ControlPlaneInitialized, status: 'True', reason: x, lastTransitionTime: '2026-01-01T00:00:00Z'}]",
        );
    }
    if control_plane {
        cluster.spec.control_plane_ref =
            object("{apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: blue}");
    }
    cluster
}

fn machine(control_plane: bool) -> Machine {
    let mut machine: Machine = object(
        "metadata: {name: m-1, namespace: fleet, uid: machine-uid}\nspec: {clusterName: blue, version: v1.34.1}",
    );
    if control_plane {
        machine.metadata.labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
    }
    machine
}

fn certificates() -> BTreeMap<Purpose, Secret> {
    let settings = KeySettings { algorithm: EncryptionAlgorithmType::EcdsaP256, authority_days: 3650 };
    let seed = SeededKeys::new(1).seed("certificates").expect("a seed");
    let make = |purpose| {
        let pair = KeyPair::make(purpose, settings, &seed, now()).expect("a pair");
        (purpose, pair.to_secret("fleet", "blue", purpose, OwnerReference::default()))
    };
    Purpose::MADE.into_iter().map(make).collect()
}

fn seen(machine: Machine, cluster: Cluster) -> Observed {
    Observed {
        machine: Some(Arc::new(machine)),
        pool: false,
        cluster: Some(Arc::new(cluster)),
        lock: None,
        lock_holder_exists: false,
        data: None,
        certificates: certificates(),
        sources: BTreeMap::new(),
        control_plane_version: None,
        token: TokenState::NotNeeded,
        seed: SeededKeys::new(7).seed("config").expect("a seed"),
    }
}

fn lock_of(holder: &str) -> ConfigMap {
    lock::held_by(&crate::testing::cluster(), holder)
}

fn look(config: KubeadmConfig, seen: Observed) -> Look<BootstrapController> {
    Look::new(Arc::new(config), seen, now())
}

fn decided(config: KubeadmConfig, seen: Observed) -> Decision<BootstrapController> {
    decide(&Settings::default(), &look(config, seen))
}

fn message(decision: &Decision<BootstrapController>, kind: &str) -> String {
    decision.object.status.conditions.condition(kind).map(|c| c.message.clone()).unwrap_or_default()
}

fn is_true(decision: &Decision<BootstrapController>, kind: &str) -> bool {
    decision.object.status.conditions.is_condition_true(kind)
}

#[test]
fn nothing_is_done_before_the_infrastructure_exists() {
    let mut waiting = cluster(false, true);
    waiting.status.initialization.infrastructure_provisioned = None;
    let decision = decided(config("{}"), seen(machine(true), waiting));
    assert_eq!(effects(&decision), [""; 0]);
    assert!(message(&decision, "DataSecretAvailable").contains("infrastructureProvisioned"));
    assert!(!is_true(&decision, "Ready"));
}

#[test]
fn a_moved_machine_keeps_the_data_it_booted_from() {
    let mut moved = machine(false);
    moved.spec.bootstrap.data_secret_name = Some("old-data".to_owned());
    let decision = decided(config("{}"), seen(moved, cluster(true, true)));
    assert_eq!(effects(&decision), [""; 0]);
    assert_eq!(decision.object.status.data_secret_name, "old-data");
    assert!(is_true(&decision, "Ready"));
}

#[test]
fn exactly_one_machine_becomes_the_first_node() {
    let control_plane = |lock: Option<ConfigMap>, holder_exists: bool| {
        let seen =
            Observed { lock, lock_holder_exists: holder_exists, ..seen(machine(true), cluster(false, true)) };
        effects(&decided(config("{}"), seen))
    };
    let none: [&str; 0] = [];
    assert_eq!(control_plane(None, false), ["create configmaps blue-lock"]);
    assert_eq!(control_plane(Some(lock_of("m-1")), true), ["create secrets blue-cp-1"]);
    assert_eq!(control_plane(Some(lock_of("m-2")), true), none, "another machine is at it");
    assert_eq!(control_plane(Some(lock_of("m-2")), false), ["delete configmaps fleet/blue-lock"]);
    let worker = decided(config("{}"), seen(machine(false), cluster(false, true)));
    assert_eq!(effects(&worker), none);
    assert_eq!(worker.look_again, Some(Duration::from_secs(30)));
}

#[test]
fn a_machine_that_cannot_be_first_releases_the_lock() {
    let wrong = "{files: [{path: /a, contentFrom: {secret: {name: nowhere, key: k}}}]}";
    let held = Observed {
        lock: Some(lock_of("m-1")),
        lock_holder_exists: true,
        ..seen(machine(true), cluster(false, true))
    };
    let decision = decided(config(wrong), held);
    assert_eq!(effects(&decision), ["delete configmaps fleet/blue-lock"]);
    assert_eq!(message(&decision, "DataSecretAvailable"), "secret nowhere does not exist");
    let free = decided(config(wrong), seen(machine(true), cluster(false, true)));
    assert_eq!(effects(&free), [""; 0], "the lock is not taken for nothing");
}

#[test]
fn certificates_are_generated_only_without_a_control_plane_provider() {
    let with = |control_plane: bool| {
        let seen = Observed {
            certificates: BTreeMap::new(),
            lock: Some(lock_of("m-1")),
            lock_holder_exists: true,
            ..seen(machine(true), cluster(false, control_plane))
        };
        decided(config("{}"), seen)
    };
    assert_eq!(
        effects(&with(false)),
        [
            "create secrets blue-ca",
            "create secrets blue-etcd",
            "create secrets blue-proxy",
            "create secrets blue-sa"
        ]
    );
    let waiting = with(true);
    assert_eq!(effects(&waiting), [""; 0]);
    assert_eq!(
        message(&waiting, "CertificatesAvailable"),
        "Waiting for secrets blue-ca, blue-etcd, blue-proxy, blue-sa"
    );
}

/// Applies a decision as the runtime would, as far as the next reconcile can observe it.
fn carry_out(
    config: &mut KubeadmConfig,
    seen: &mut Observed,
    decision: Decision<BootstrapController>,
) -> Vec<String> {
    let done = effects(&decision);
    for planned in &decision.effects {
        match &planned.effect {
            capstan_controller::Effect::Create { body, .. } if body["kind"] == "Secret" => {
                seen.data = serde_json::from_value(body.clone()).ok();
            }
            capstan_controller::Effect::Call(call) => {
                seen.token = TokenState::Found { expires: Some(call.expires.timestamp()) };
            }
            _ => {}
        }
    }
    let status_only = done.is_empty() && decision.object.spec == config.spec;
    if decision.object.spec != config.spec {
        seen.token = TokenState::Missing;
    }
    config.spec = decision.object.spec;
    if status_only {
        config.status = decision.object.status;
    }
    done
}

fn run_to_rest(
    mut config: KubeadmConfig,
    make: impl Fn() -> Observed,
) -> (Vec<String>, KubeadmConfig, Observed) {
    let mut trace = Vec::new();
    let mut world = make();
    for _ in 0..10 {
        let seen = Observed { data: world.data.clone(), token: world.token.clone(), ..make() };
        let before = config.clone();
        let decision = decided(config.clone(), seen);
        let done = carry_out(&mut config, &mut world, decision);
        if done.is_empty() && config == before {
            return (trace, config, world);
        }
        trace.extend(done);
    }
    panic!("does not come to rest: {trace:?}");
}

#[test]
fn a_token_is_recorded_before_it_is_created_and_created_before_it_is_used() {
    for control_plane in [true, false] {
        let make = || seen(machine(control_plane), cluster(true, true));
        let (trace, config, world) = run_to_rest(config("{}"), make);
        let token = config.spec.join_configuration.discovery.bootstrap_token.token.clone();
        let (id, secret) = token::halves(&token).expect("a token");
        let expected = format!("extend bootstrap token {id} of cluster blue to 2026-11-15T08:15:00Z");
        assert_eq!(trace, [expected.as_str(), "create secrets blue-cp-1"]);
        assert_eq!(config.spec.join_configuration.control_plane.is_some(), control_plane);
        assert!(config.status.conditions.is_condition_true("Ready"));
        let data = world.data.expect("the data");
        assert_eq!(data.text("format").expect("a format"), "cloud-config");
        let value = data.text("value").expect("the data");
        assert!(value.contains(&token) && value.contains("10.0.0.10:6443"));
        assert_eq!(value.contains("/etc/kubernetes/pki/ca.key"), control_plane);
        assert!(trace.iter().all(|line| !line.contains(secret)), "a token is never shown");
    }
}

#[test]
fn one_seed_gives_the_same_data() {
    let run = || run_to_rest(config("{}"), || seen(machine(false), cluster(true, true))).2.data;
    assert_eq!(run(), run());
}

#[test]
fn a_token_is_extended_until_the_node_has_joined() {
    let spec = "{joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef}}}}";
    let mut made = config(spec);
    made.status.initialization.data_secret_created = Some(true);
    made.status.data_secret_name = "blue-cp-1".to_owned();
    let with = |token: TokenState, joined: bool| {
        let mut machine = machine(false);
        if joined {
            machine.status.node_ref.name = "node".to_owned();
        }
        decided(made.clone(), Observed { token, ..seen(machine, cluster(true, true)) })
    };
    let in_minutes =
        |minutes| TokenState::Found { expires: Some(now() + SignedDuration::from_mins(minutes)) };
    let extend = "extend bootstrap token abcdef of cluster blue to 2026-11-15T08:15:00Z";
    for (token, expected) in [
        (in_minutes(14), None),
        (in_minutes(12), Some(extend)),
        (in_minutes(-5), Some(extend)),
        (TokenState::Missing, Some(extend)),
        (TokenState::Found { expires: None }, Some(extend)),
    ] {
        let decision = with(token.clone(), false);
        assert_eq!(effects(&decision), expected.into_iter().collect::<Vec<_>>(), "{token:?}");
        assert_eq!(decision.look_again, Some(Duration::from_secs(300)));
    }
    let joined = with(in_minutes(1), true);
    assert_eq!((effects(&joined).len(), joined.look_again), (0, None));
}

/// A pool that asks for data, with or without nodes.
fn pool(joined: bool) -> Machine {
    let mut pool: capstan_capi_types::core::MachinePool = object(
        "metadata: {name: pool, namespace: fleet, uid: pool-uid}\nspec: {clusterName: blue, template: {spec: {version: v1.34.1}}}",
    );
    if joined {
        pool.status.node_refs = object("[{name: node}]");
    }
    observe::machine_of_pool(&pool)
}

#[test]
fn the_token_of_a_pool_is_replaced_with_its_data_as_long_as_the_pool_exists() {
    let make = || Observed { pool: true, ..seen(pool(false), cluster(true, true)) };
    let (_, made, world) = run_to_rest(config("{}"), make);
    assert!(made.status.conditions.is_condition_true("Ready"));
    let first = made.spec.join_configuration.discovery.bootstrap_token.token.clone();
    let in_minutes =
        |minutes| TokenState::Found { expires: Some(now() + SignedDuration::from_mins(minutes)) };
    let with = |config: &KubeadmConfig, token: TokenState, joined| {
        let data = world.data.clone();
        let seen = Observed { pool: true, token, data, ..seen(pool(joined), cluster(true, true)) };
        decided(config.clone(), seen)
    };
    // Without nodes the token is extended, as for a machine.
    let extended = with(&made, in_minutes(5), false);
    assert_eq!(effects(&extended).len(), 1);
    assert_eq!(extended.object.spec, made.spec);
    // With nodes it is kept while it is fresh.
    let fresh = with(&made, in_minutes(8), true);
    assert_eq!((effects(&fresh).len(), fresh.object.spec == made.spec), (0, true));
    assert_eq!(fresh.look_again, Some(Duration::from_secs(300)));
    // And replaced when it is not: recorded, created, put into the data.
    let rotated = with(&made, in_minutes(7), true);
    let second = rotated.object.spec.join_configuration.discovery.bootstrap_token.token.clone();
    assert!(effects(&rotated).is_empty() && second != first && token::halves(&second).is_some());
    let made = KubeadmConfig { spec: rotated.object.spec, ..made };
    let created = with(&made, TokenState::Missing, true);
    let (id, _) = token::halves(&second).expect("a token");
    let expected = format!("extend bootstrap token {id} of cluster blue to 2026-11-15T08:15:00Z");
    assert_eq!(effects(&created), [expected]);
    let stored = with(&made, in_minutes(15), true);
    assert_eq!(effects(&stored), ["patch secrets fleet/blue-cp-1"]);
}

#[test]
fn a_changed_configuration_changes_the_data_of_a_pool() {
    let make = || Observed { pool: true, ..seen(pool(true), cluster(true, true)) };
    let (_, mut made, world) = run_to_rest(config("{}"), make);
    made.spec.pre_kubeadm_commands = vec!["echo hello".to_owned()];
    let seen = Observed { data: world.data, token: world.token, ..make() };
    assert_eq!(effects(&decided(made, seen)), ["patch secrets fleet/blue-cp-1"]);
}

#[test]
fn tokens_have_the_format_of_kubernetes() {
    for n in 0..50 {
        let token = token::generate(&SeededKeys::new(n).seed("x").expect("a seed"), "");
        assert!(token::halves(&token).is_some(), "{token}");
    }
    for wrong in ["", "abcdef", "ABCDEF.0123456789abcdef", "abcdef.0123", "abcde.0123456789abcdef"] {
        assert!(token::halves(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn the_lock_is_deleted_once_the_control_plane_exists() {
    let seen = Observed { lock: Some(lock_of("m-9")), ..seen(machine(false), cluster(true, true)) };
    assert_eq!(effects(&decided(config("{}"), seen)), ["delete configmaps fleet/blue-lock"]);
}

#[test]
fn data_written_but_not_recorded_is_found() {
    let make = || Observed {
        lock: Some(lock_of("m-1")),
        lock_holder_exists: true,
        ..seen(machine(true), cluster(false, true))
    };
    let first = decided(config("{}"), make());
    let capstan_controller::Effect::Create { body, .. } = &first.effects[0].effect else {
        panic!("a create")
    };
    let data: Secret = serde_json::from_value(Value::clone(body)).expect("a secret");
    let again = decided(config("{}"), Observed { data: Some(data.clone()), ..make() });
    assert_eq!(effects(&again), [""; 0]);
    assert_eq!(again.object.status.data_secret_name, "blue-cp-1");
    let mut other = data;
    other.data.insert("value".to_owned(), b"stale".to_vec());
    let replaced = decided(config("{}"), Observed { data: Some(other), ..make() });
    assert_eq!(effects(&replaced), ["patch secrets fleet/blue-cp-1"]);
}

#[test]
fn a_removed_owner_reference_is_restored() {
    let mut made = config("{}");
    made.status.initialization.data_secret_created = Some(true);
    made.status.data_secret_name = "blue-cp-1".to_owned();
    let mut stripped: Secret = object("metadata: {name: blue-cp-1, namespace: fleet, resourceVersion: '5'}");
    let seen_with =
        |data: &Secret| Observed { data: Some(data.clone()), ..seen(machine(false), cluster(true, true)) };
    assert_eq!(effects(&decided(made.clone(), seen_with(&stripped))), ["patch secrets fleet/blue-cp-1"]);
    stripped.metadata.owner_references =
        vec![OwnerReference { controller: Some(true), ..OwnerReference::to(&made) }];
    assert_eq!(effects(&decided(made, seen_with(&stripped))), [""; 0]);
}

#[test]
fn a_paused_configuration_has_only_the_condition() {
    let mut look = look(config("{}"), seen(machine(true), cluster(false, true)));
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = decide(&Settings::default(), &look);
    assert!(decision.effects.is_empty());
    assert!(is_true(&decision, "Paused"));
}

#[test]
fn a_worker_configured_as_control_plane_is_rejected() {
    let spec = "{joinConfiguration: {controlPlane: {}, discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: 'a:1', caCertHashes: ['sha256:b']}}}}";
    let seen =
        Observed { token: TokenState::Found { expires: None }, ..seen(machine(false), cluster(true, true)) };
    let decision = decided(config(spec), seen);
    assert!(message(&decision, "DataSecretAvailable").contains("the machine is a worker"));
}
