//! Phases, as sentences: what was observed, and where the cluster stops.

use std::sync::Arc;

use capstan_capi_types::core;
use capstan_cloudstack_provider::{CloudError, code};
use capstan_controller::{Decision, Look};
use capstan_object::{Conditions as _, ObjectMeta};
use jiff::Timestamp;
use serde_json::json;

use super::{Clusters, Observed, Settings, decide};
use crate::names::{CLUSTER_FINALIZER, SYSTEM_NAMESPACE};
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

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

#[test]
fn a_cluster_that_manages_itself_is_refused() {
    let mut own = cluster();
    own.spec.management_cluster.name = "one".to_owned();
    assert_eq!(failure(&decided(own, seen())), Some("ManagementClusterRefInvalid"));
}
