//! Phases, as sentences: what was observed, and where the cluster stops.

use std::sync::Arc;

use capstan_capi_types::core;
use capstan_cloudstack_provider::{CloudError, code};
use capstan_controller::{Decision, Effect, Look, Patch};
use capstan_object::{Conditions as _, ObjectMeta};
use jiff::Timestamp;
use serde_json::json;

use super::phases::{self, Flow, Round};
use super::{Clusters, Current, Observed, Settings, cni, decide};
use crate::generate::{Manifests, generate, metadata};
use crate::names::{CLUSTER_FINALIZER, SYSTEM_NAMESPACE, annotation, label};
use crate::release::Releases;
use crate::types::{
    AutoscalingConfiguration, Cilium, CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster,
};

fn cluster() -> Cluster {
    let group = json!({"kind": "CloudStackMachineConfig", "name": "all"});
    let object = json!({
        "metadata": {"name": "one", "namespace": "default", "generation": 3},
        "spec": {
            "kubernetesVersion": "1.33", "managementCluster": {"name": "capstan"},
            "controlPlaneConfiguration": {
                "count": 1, "endpoint": {"host": "10.0.0.10"}, "machineGroupRef": group,
            },
            "workerNodeGroupConfigurations": [{"name": "md-0", "count": 1, "machineGroupRef": group}],
            "datacenterRef": {"kind": "CloudStackDatacenterConfig", "name": "dc"},
            "clusterNetwork": {"cniConfig": {"cilium": {}}},
        },
    });
    serde_json::from_value(object).expect("a cluster")
}

/// Everything is there and valid.
fn seen() -> Observed {
    let mut datacenter =
        CloudStackDatacenterConfig { metadata: ObjectMeta::named("default", "dc"), ..Default::default() };
    datacenter.status.spec_valid = true;
    let config =
        CloudStackMachineConfig { metadata: ObjectMeta::named("default", "all"), ..Default::default() };
    let configs = [("all".to_owned(), Arc::new(config))];
    Observed {
        datacenter: Some(Arc::new(datacenter)),
        machine_configs: configs.into_iter().collect(),
        ..Observed::default()
    }
}

fn decided(cluster: Cluster, seen: Observed) -> Decision<Clusters> {
    let look = Look::<Clusters>::new(Arc::new(cluster), seen, Timestamp::UNIX_EPOCH);
    decide::decide(&Settings::default(), &look)
}

fn failure(decision: &Decision<Clusters>) -> Option<&str> {
    decision.object.status.failure_reason.as_deref()
}

#[test]
fn a_valid_cluster_begins_with_the_cluster_of_cluster_api() {
    let decision = decided(cluster(), seen());
    assert_eq!(failure(&decision), None);
    assert_eq!(decision.object.metadata.finalizers, [CLUSTER_FINALIZER]);
    let effects: Vec<String> = decision.effects.iter().map(|it| it.effect.summary()).collect();
    assert_eq!(effects, ["apply clusters.cluster.x-k8s.io eksa-system/one"]);
    assert_eq!(decision.object.status.observed_generation, 3);
    assert_eq!(decision.object.status.reconciled_generation, 0);
}

#[test]
fn what_is_wrong_stops_the_cluster_and_is_cleaned_up_when_it_is_mended() {
    let no_config = Observed { machine_configs: Default::default(), ..seen() };
    let no_datacenter = Observed { datacenter: None, ..seen() };
    let held = Observed { address_holder: Some("virtual machine vm".to_owned()), ..seen() };
    let mut invalid = CloudStackDatacenterConfig::default();
    invalid.status.failure_message = Some("no zone".to_owned());
    let wrong_datacenter = Observed { datacenter: Some(Arc::new(invalid)), ..seen() };
    let missing = CloudError::new(code::NOT_FOUND, "NotFound", "template \"t\" does not exist");
    let wrong_machines = Observed { machines: Some(missing), ..seen() };
    let mut other =
        core::Cluster { metadata: ObjectMeta::named(SYSTEM_NAMESPACE, "one"), ..Default::default() };
    other.metadata.uid = "other".to_owned();
    let mut taken = seen();
    taken.current.cluster = Some(Arc::new(other));
    for (observed, reason) in [
        (no_config, "MissingDependentObjects"),
        (no_datacenter, "MissingDependentObjects"),
        (held, "UnavailableControlPlaneIP"),
        (wrong_datacenter, "DatacenterConfigInvalid"),
        (wrong_machines, "MachineConfigInvalid"),
        (taken, "ClusterInvalid"),
    ] {
        let decision = decided(cluster(), observed);
        assert_eq!(failure(&decision), Some(reason));
        assert!(decision.effects.is_empty(), "{reason}");
        let ready = decision.object.status.conditions.condition("Ready").map(|it| it.reason.clone());
        assert_eq!(ready.as_deref(), Some(reason));
        let mended = decided(decision.object, seen());
        assert_eq!(failure(&mended), None, "{reason}");
        assert_eq!(mended.object.status.failure_message, None, "{reason}");
    }
}

#[test]
fn a_datacenter_that_was_not_validated_yet_is_waited_for() {
    let unknown = Observed { datacenter: Some(Arc::default()), ..seen() };
    let decision = decided(cluster(), unknown);
    assert_eq!(failure(&decision), None);
    assert_eq!(decision.waits[0].reason, "WaitingForDatacenter");
    assert!(decision.effects.is_empty());
}

#[test]
fn a_cloud_that_is_down_does_not_fail_a_cluster() {
    let down = CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no route to host");
    let decision = decided(cluster(), Observed { machines: Some(down), ..seen() });
    assert_eq!(failure(&decision), None);
    assert!(decision.effects.is_empty());
}

/// Everything is there and valid, and there is a Cluster of Cluster API.
fn running(cluster: &Cluster) -> Observed {
    let mut seen = seen();
    let mut own = core::Cluster { metadata: metadata(cluster, "one"), ..Default::default() };
    own.metadata.uid = "u".to_owned();
    seen.current.cluster = Some(Arc::new(own));
    seen
}

#[test]
fn what_was_never_validated_is_not_rolled_out_while_the_cloud_is_down() {
    let down = || Some(CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no route to host"));
    let mut done = cluster();
    done.status.reconciled_generation = done.metadata.generation;
    let observed = || Observed { machines: down(), ..running(&done) };
    // What was reconciled before is kept as it is.
    assert!(!decided(done.clone(), observed()).effects.is_empty());
    let mut changed = done.clone();
    changed.metadata.generation += 1;
    let mut refused = done.clone();
    refused.status.failure_reason = Some("MachineConfigInvalid".to_owned());
    let mut config =
        CloudStackMachineConfig { metadata: ObjectMeta::named("default", "all"), ..Default::default() };
    config.metadata.generation = 2;
    let other_config = Observed {
        machine_configs: [("all".to_owned(), Arc::new(config))].into_iter().collect(),
        ..observed()
    };
    for (cluster, observed) in [(changed, observed()), (refused, observed()), (done.clone(), other_config)] {
        let decision = decided(cluster.clone(), observed);
        assert!(decision.effects.is_empty());
        assert_eq!(decision.waits[0].reason, "CloudUnreachable");
        assert_eq!(failure(&decision), cluster.status.failure_reason.as_deref());
    }
}

#[test]
fn the_replicas_of_an_autoscaled_group_are_left_to_the_autoscaler() {
    let mut autoscaled = cluster();
    autoscaled.spec.worker_node_group_configurations[0].autoscaling_configuration =
        Some(AutoscalingConfiguration { min_count: 1, max_count: 5 });
    for (cluster, replicas) in [(cluster(), Some(1)), (autoscaled, None)] {
        let mut seen = running(&cluster);
        let Some(datacenter) = &seen.datacenter else { panic!("a datacenter") };
        let releases = Releases::default();
        let manifests = Manifests {
            cluster: &cluster,
            datacenter,
            machine_configs: &seen.machine_configs,
            releases: &releases,
        };
        let generated = generate(&manifests).expect("objects");
        let mut plane = generated.control_plane;
        plane.status.version.clone_from(&plane.spec.version);
        let available = json!([{"type": "Available", "status": "True", "reason": "Available", "lastTransitionTime": "1970-01-01T00:00:00Z"}]);
        plane.status.conditions = serde_json::from_value(available).expect("conditions");
        let mut deployment = generated.groups[0].deployment.clone();
        deployment.spec.replicas = Some(4);
        seen.current.control_plane = Some(Arc::new(plane));
        seen.current.deployments.insert("one-md-0".to_owned(), Arc::new(deployment));
        let look = Look::<Clusters>::new(Arc::new(cluster), seen, Timestamp::UNIX_EPOCH);
        let settings = Settings::default();
        let decision = Decision::rest(&look);
        let mut round = Round { settings: &settings, look: &look, decision, generated: None, cni: None };
        assert_eq!(phases::validate_machine_configs(&mut round), Flow::Next);
        assert_eq!(phases::workers(&mut round), Flow::Next);
        let applied = round.decision.effects.iter().find_map(|planned| match &planned.effect {
            Effect::Patch { patch: Patch::Apply { body, .. }, .. } if body["kind"] == "MachineDeployment" => {
                Some(body["spec"].clone())
            }
            _ => None,
        });
        let found = applied.expect("a MachineDeployment").get("replicas").cloned();
        assert_eq!(found, replicas.map(serde_json::Value::from));
    }
}

#[test]
fn skipping_upgrades_installs_the_cni_of_a_new_cluster_once() {
    let mut skipping = cluster();
    skipping.spec.cluster_network.cni_config.as_mut().expect("a CNI").cilium =
        Some(Cilium { skip_upgrade: Some(true), ..Cilium::default() });
    let mut ready = skipping.clone();
    ready.status.reconciled_generation = 1;
    let mut taken_over = cluster();
    taken_over.metadata.annotations.insert(annotation::CILIUM_INSTALLED.to_owned(), String::new());
    for (cluster, left) in [(cluster(), false), (skipping, false), (ready, true), (taken_over, true)] {
        assert_eq!(cni::is_left(&cluster, &Current::default()), left, "{cluster:?}");
    }
}

#[test]
fn the_cluster_of_cluster_api_is_deleted_if_it_was_made_for_this_one() {
    let mut deleted = cluster();
    deleted.metadata.finalizers = vec![CLUSTER_FINALIZER.to_owned()];
    deleted.metadata.deletion_timestamp = Some(capstan_object::Time::new(Timestamp::UNIX_EPOCH));
    let mut reconciled = deleted.clone();
    reconciled.status.reconciled_generation = 1;
    let labelled = || running(&cluster());
    let with = |namespace: Option<&str>| {
        let mut seen = labelled();
        let labels = &mut Arc::make_mut(seen.current.cluster.as_mut().expect("a cluster")).metadata.labels;
        labels.retain(|key, _| key == core::label::CLUSTER_NAME);
        for (key, value) in [(label::CLUSTER_NAME, Some("one")), (label::CLUSTER_NAMESPACE, namespace)] {
            labels.extend(value.filter(|_| namespace.is_some()).map(|it| (key.to_owned(), it.to_owned())));
        }
        seen
    };
    for (name, cluster, seen, is_deleted) in [
        ("its own", &deleted, with(Some("default")), true),
        ("of a cluster with the same name", &reconciled, with(Some("other")), false),
        // A user may write the status of a cluster, so it says nothing.
        ("of another owner", &deleted, with(None), false),
        ("of another owner, with a status that claims it", &reconciled, with(None), false),
    ] {
        let decision = decided(cluster.clone(), seen);
        assert_eq!(!decision.effects.is_empty(), is_deleted, "{name}");
        assert_eq!(decision.object.metadata.finalizers.is_empty(), !is_deleted, "{name}");
    }
}

#[test]
fn a_cluster_that_manages_itself_is_refused() {
    let mut own = cluster();
    own.spec.management_cluster.name = "one".to_owned();
    assert_eq!(failure(&decided(own, seen())), Some("ManagementClusterRefInvalid"));
}
