//! Clusters of a class, and pools.

use std::collections::BTreeMap;

use capstan_controller::{Client, Deletion, KindName};
use capstan_object::Key;
use capstan_rehearsal::MachineEvent;
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::edits::{Done, apply, counts, documents, loads, merge, outline, sample_with};
use crate::original::{Both, rehearse_and_apply};

/// The events of each owner, in order. Owners of one cluster may take turns in any order.
fn by_owner(steps: &[MachineEvent]) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (what, of, _, name) in outline(steps) {
        all.entry(of).or_default().push(format!("{what:?} {name}"));
    }
    all
}

fn previewed(prepare: fn(Client) -> Done, edit: fn(Client) -> Done) -> Both {
    let both = rehearse_and_apply(prepare, edit).expect("a preview");
    assert_eq!(by_owner(&both.previewed.steps), by_owner(&both.happened));
    assert_eq!(both.previewed.before, [], "no change was in progress");
    assert!(both.previewed.idle);
    both
}

/// The class and its cluster, with changes to objects by kind.
async fn class_with(client: Client, changes: Vec<(&'static str, Value)>) -> Result<(), String> {
    let texts = [
        include_str!("../../../../../examples/cni.yaml"),
        include_str!("../../../../../examples/sim-class.yaml"),
    ];
    for mut object in documents(texts) {
        for (kind, change) in &changes {
            if object["kind"] == *kind {
                merge(&mut object, change);
            }
        }
        apply(&client, object).await?;
    }
    Ok(())
}

fn create_class(client: Client) -> Done {
    class_with(client, Vec::new()).boxed()
}

#[test]
fn a_variable_of_a_cluster_replaces_the_previewed_machines() {
    let more = |client| {
        let variables = json!([{"name": "memory", "value": 8192}]);
        class_with(client, vec![("Cluster", json!({"spec": {"topology": {"variables": variables}}}))]).boxed()
    };
    let both = previewed(create_class, more);
    assert_eq!(counts(&both.happened), (2, 2));
    let names = |objects: &[Value]| {
        let templates = objects.iter().filter(|it| it["kind"] == "SimMachineTemplate");
        templates.map(|it| it["metadata"]["name"].clone()).collect::<Vec<_>>()
    };
    let Both { previewed, .. } = both;
    assert_eq!((names(&previewed.objects_before).len(), names(&previewed.objects).len()), (3, 3));
    assert_ne!(names(&previewed.objects_before), names(&previewed.objects), "templates are rotated");
}

/// The sample with a pool of two machines beside its MachineDeployment.
async fn with_pool(client: Client, change: Value) -> Result<(), String> {
    sample_with(client.clone(), Vec::new()).await?;
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "pool"});
    let spec = json!({"clusterName": "quick", "replicas": 2, "template": {"spec": {
        "clusterName": "quick", "version": "v1.36.0",
        "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig")},
        "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "SimMachinePool"),
    }}});
    for (api, kind, spec) in [
        (
            "bootstrap.cluster.x-k8s.io/v1beta2",
            "KubeadmConfig",
            json!({"joinConfiguration": {"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}}}),
        ),
        (
            "infrastructure.cluster.x-k8s.io/v1beta1",
            "SimMachinePool",
            json!({"template": {"cpus": 2, "memoryMiB": 4096}}),
        ),
        ("cluster.x-k8s.io/v1beta2", "MachinePool", spec),
    ] {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "pool"}, "spec": spec});
        merge(&mut object["spec"], &change[kind]);
        apply(&client, object).await?;
    }
    Ok(())
}

fn create_pool(client: Client) -> Done {
    with_pool(client, json!({"SimMachinePool": {}, "KubeadmConfig": {}, "MachinePool": {}})).boxed()
}

#[test]
fn a_pool_is_scaled_as_previewed() {
    let up = |client| {
        let change = json!({"SimMachinePool": {}, "KubeadmConfig": {}, "MachinePool": {"replicas": 4}});
        with_pool(client, change).boxed()
    };
    let both = previewed(create_pool, up);
    assert_eq!(counts(&both.happened), (2, 0));
    assert!(both.happened.iter().all(|step| step.machine.of == "MachinePool/pool"), "{:?}", both.happened);
    let (now, peak) = loads(&both);
    assert_eq!((now.machines, peak.machines), (4, 6));
    assert_eq!((peak.size.cpus, peak.unsized_machines), (12, 0));
    let down = |client| {
        let change = json!({"SimMachinePool": {}, "KubeadmConfig": {}, "MachinePool": {"replicas": 1}});
        with_pool(client, change).boxed()
    };
    assert_eq!(counts(&previewed(create_pool, down).happened), (0, 1));
}

#[test]
fn machines_of_a_changed_pool_are_replaced_as_previewed() {
    let larger = |client| {
        let change =
            json!({"SimMachinePool": {"template": {"cpus": 4}}, "KubeadmConfig": {}, "MachinePool": {}});
        with_pool(client, change).boxed()
    };
    let both = rehearse_and_apply(create_pool, larger).expect("a preview");
    assert_eq!((counts(&both.previewed.steps), counts(&both.happened)), ((2, 2), (2, 2)));
    assert!(both.previewed.idle);
    let (now, peak) = loads(&both);
    assert_eq!((now.machines, peak.machines), (4, 6), "the second comes while the first still goes");
}

#[test]
fn a_deleted_pool_deletes_the_previewed_machines() {
    let delete = |client: Client| {
        let deleted = async move {
            let kind = KindName::namespaced("cluster.x-k8s.io", "v1beta2", "MachinePool", "machinepools");
            let deleted = client.delete(&kind, &Key::new("default", "pool"), &Deletion::default()).await;
            deleted.map(drop).map_err(|error| error.to_string())
        };
        deleted.boxed()
    };
    let both = rehearse_and_apply(create_pool, delete).expect("a preview");
    assert_eq!((counts(&both.previewed.steps), counts(&both.happened)), ((0, 2), (0, 2)));
    assert!(both.previewed.idle);
}
