//! The preview of an edit equals what then happens: the same machines are created and deleted, in the same order.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_controller::{Client, Deletion, KindName, Patch};
use capstan_object::{Key, Scope};
use capstan_provider_kit::Size;
use capstan_rehearsal::{Load, MachineEvent, MachineEventKind, MachineInfo, RehearsalError};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::original::{Both, rehearse_and_apply, rehearse_in_the_middle};

pub type Done = BoxFuture<'static, Result<(), String>>;

fn sample() -> Vec<Value> {
    documents([
        include_str!("../../../../../examples/cni.yaml"),
        include_str!("../../../../../examples/sim-cluster.yaml"),
    ])
}

pub fn documents(texts: [&str; 2]) -> Vec<Value> {
    texts.into_iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("YAML")).collect()
}

pub async fn apply(client: &Client, mut object: Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let kind = client.served(&api, &kind).await.map_err(|error| error.to_string())?.ok_or("no such kind")?;
    if kind.scope == Scope::Namespaced {
        object["metadata"]["namespace"] = "default".into();
    }
    let key = Key::new("default", text(&object["metadata"]["name"]));
    let applied = client.patch(&kind, &key, None, &Patch::Apply { body: object, force: true }).await;
    applied.map(drop).map_err(|error| error.to_string())
}

/// The sample, with changes to its objects by kind.
pub async fn sample_with(client: Client, changes: Vec<(&'static str, Value)>) -> Result<(), String> {
    for mut object in sample() {
        for (kind, change) in &changes {
            if object["kind"] == *kind {
                merge(&mut object, change);
            }
        }
        apply(&client, object).await?;
    }
    Ok(())
}

pub fn merge(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change.clone(),
    }
}

fn create(client: Client) -> Done {
    sample_with(client, Vec::new()).boxed()
}

fn create_three(client: Client) -> Done {
    let changes = vec![
        ("KubeadmControlPlane", json!({"spec": {"replicas": 3}})),
        ("MachineDeployment", json!({"spec": {"replicas": 2}})),
    ];
    sample_with(client, changes).boxed()
}

fn nothing(_: Client) -> Done {
    futures::future::ready(Ok(())).boxed()
}

/// The events without what is random: names of new machines, and times.
pub fn outline(steps: &[MachineEvent]) -> Vec<(MachineEventKind, String, String, String)> {
    let described = |step: &MachineEvent| {
        let machine = &step.machine;
        let name = if machine.existed { machine.name.clone() } else { "new".to_owned() };
        (step.what, machine.of.clone(), machine.version.clone(), name)
    };
    // The order in which two machines become ready at about the same time is not predictable.
    steps.iter().filter(|step| step.what != MachineEventKind::Ready).map(described).collect()
}

pub fn counts(steps: &[MachineEvent]) -> (usize, usize) {
    let count = |what| steps.iter().filter(|step| step.what == what).count();
    (count(MachineEventKind::Created), count(MachineEventKind::Deleted))
}

pub fn loads(both: &Both) -> (Load, Load) {
    both.previewed.loads(|_| true, |machine| machine.infrastructure.as_deref().and_then(Size::in_spec))
}

fn previewed(prepare: fn(Client) -> Done, edit: fn(Client) -> Done) -> Both {
    let both = rehearse_and_apply(prepare, edit).expect("a preview");
    assert_eq!(outline(&both.previewed.steps), outline(&both.happened));
    assert_eq!(both.previewed.before, [], "no change was in progress");
    assert!(both.previewed.idle);
    both
}

#[test]
fn a_new_cluster_is_created_as_previewed() {
    let both = previewed(nothing, create);
    assert_eq!(counts(&both.happened), (2, 0));
    let (now, peak) = loads(&both);
    assert_eq!((now.machines, peak.machines), (0, 2));
    assert_eq!((peak.size.cpus, peak.size.memory_mib), (4, 8192));
    assert_eq!(both.previewed.without_network, [], "the sample has a CNI");
    // The control plane is initialized before a worker joins.
    let ready: Vec<&MachineEvent> =
        both.previewed.steps.iter().filter(|step| step.what == MachineEventKind::Ready).collect();
    assert_eq!(ready.len(), 2);
    assert!(ready[0].machine.of.starts_with("KubeadmControlPlane/") && ready[0].seconds > 30, "{ready:?}");
}

/// At any time of its creation, a cluster is expected to become ready.
#[test]
fn a_cluster_that_boots_becomes_ready_in_the_copy() {
    for seconds in (2..100).step_by(14) {
        let both = rehearse_in_the_middle(create, Duration::from_secs(seconds), nothing).expect("a preview");
        let ready = |object: &&Value| {
            let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            object["kind"] == "Machine"
                && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        let count = both.previewed.objects.iter().filter(ready).count();
        assert_eq!(count, 2, "after {seconds} s: {:#?}", both.previewed.objects);
    }
}

#[test]
fn workers_are_added_and_removed_as_previewed() {
    let up =
        |client| sample_with(client, vec![("MachineDeployment", json!({"spec": {"replicas": 3}}))]).boxed();
    let both = previewed(create, up);
    assert_eq!(counts(&both.happened), (2, 0));
    let down = |client| {
        let changes = vec![
            ("KubeadmControlPlane", json!({"spec": {"replicas": 3}})),
            ("MachineDeployment", json!({"spec": {"replicas": 1}})),
        ];
        sample_with(client, changes).boxed()
    };
    let both = previewed(create_three, down);
    assert_eq!(counts(&both.happened), (0, 1));
    let gone =
        both.previewed.steps.iter().find(|step| step.what == MachineEventKind::Deleted).expect("one goes");
    assert!(gone.machine.existed, "{gone:?}");
}

#[test]
fn an_upgrade_replaces_machines_in_the_previewed_order() {
    let upgrade = |client| {
        let changes = vec![
            ("KubeadmControlPlane", json!({"spec": {"replicas": 3, "version": "v1.36.1"}})),
            (
                "MachineDeployment",
                json!({"spec": {"replicas": 2, "template": {"spec": {"version": "v1.36.1"}}}}),
            ),
        ];
        sample_with(client, changes).boxed()
    };
    let both = previewed(create_three, upgrade);
    assert_eq!(counts(&both.happened), (5, 5));
    let (now, peak) = loads(&both);
    let more = peak.machines - now.machines;
    assert!((1..=2).contains(&more), "{more} machines more than before");
}

#[test]
fn a_changed_template_rolls_the_previewed_machines() {
    let roll = |client: Client| {
        let changed = async move {
            let mut template =
                sample().into_iter().find(|it| it["kind"] == "SimMachineTemplate").expect("one");
            template["metadata"]["name"] = "larger".into();
            template["spec"]["template"]["spec"]["cpus"] = 4.into();
            apply(&client, template).await?;
            let reference = json!({"infrastructureRef": {"name": "larger"}});
            sample_with(
                client,
                vec![("MachineDeployment", json!({"spec": {"template": {"spec": reference}}}))],
            )
            .await
        };
        changed.boxed()
    };
    let both = previewed(create, roll);
    assert_eq!(counts(&both.happened), (1, 1));
    assert_eq!(loads(&both).1.size.cpus, 2 + 2 + 4, "the new one comes before the old one goes");
}

#[test]
fn a_deleted_deployment_deletes_the_previewed_machines() {
    let delete = |client: Client| {
        let deleted = async move {
            let kind = KindName::namespaced(
                "cluster.x-k8s.io",
                "v1beta2",
                "MachineDeployment",
                "machinedeployments",
            );
            let key = Key::new("default", "quick-workers");
            let deleted = client.delete(&kind, &key, &Deletion::default()).await;
            deleted.map(drop).map_err(|error| error.to_string())
        };
        deleted.boxed()
    };
    let both = previewed(create, delete);
    assert_eq!(counts(&both.happened), (0, 1));
}

#[test]
fn a_cluster_is_deleted_in_the_previewed_order() {
    let delete = |client: Client| {
        let deleted = async move {
            let kind = KindName::namespaced("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
            let deleted = client.delete(&kind, &Key::new("default", "quick"), &Deletion::default()).await;
            deleted.map(drop).map_err(|error| error.to_string())
        };
        deleted.boxed()
    };
    let both = rehearse_and_apply(create_three, delete).expect("a preview");
    assert!(both.previewed.idle);
    let gone = |steps: &[MachineEvent]| -> Vec<MachineInfo> {
        let gone = steps.iter().filter(|step| step.what == MachineEventKind::Deleted);
        gone.map(|step| step.machine.clone()).collect()
    };
    // The order in which machines disappear that are deleted at the same time is not predictable.
    let owners =
        |steps: &[MachineEvent]| gone(steps).into_iter().map(|machine| machine.of).collect::<Vec<_>>();
    let names =
        |steps: &[MachineEvent]| gone(steps).into_iter().map(|machine| machine.name).collect::<BTreeSet<_>>();
    assert_eq!(owners(&both.previewed.steps), owners(&both.happened));
    assert_eq!(names(&both.previewed.steps), names(&both.happened));
    let (workers, control_plane) = ("MachineDeployment/quick-workers", "KubeadmControlPlane/quick");
    assert_eq!(owners(&both.happened), [workers, workers, control_plane, control_plane, control_plane]);
}

#[test]
fn a_cluster_without_a_cni_is_planned_as_if_it_had_one() {
    fn bare(client: Client) -> Done {
        let applied = async move {
            let is_network =
                |object: &Value| object["kind"] == "ClusterResourceSet" || object["kind"] == "ConfigMap";
            for object in sample().into_iter().filter(|object| !is_network(object)) {
                apply(&client, object).await?;
            }
            Ok(())
        };
        applied.boxed()
    }
    let both = previewed(nothing, bare);
    assert_eq!(counts(&both.previewed.steps), (2, 0));
    let ready = both.previewed.steps.iter().filter(|step| step.what == MachineEventKind::Ready).count();
    assert_eq!(ready, 2, "{:?}", both.previewed.steps);
    assert_eq!(both.previewed.without_network, [Key::new("default", "quick")]);
}

#[test]
fn an_unchanged_manifest_leads_to_no_event() {
    let both = previewed(create, create);
    assert_eq!(both.previewed.steps, []);
    let (now, peak) = loads(&both);
    assert_eq!(now, peak);
}

#[test]
fn an_edit_that_the_server_rejects_fails_with_its_message() {
    let wrong =
        |client| sample_with(client, vec![("KubeadmControlPlane", json!({"spec": {"replicas": 2}}))]).boxed();
    match rehearse_and_apply(create, wrong) {
        Err(RehearsalError::Refused(said)) => assert!(said.contains("spec.replicas"), "{said}"),
        other => panic!("{:?}", other.map(|both| both.happened)),
    }
}
