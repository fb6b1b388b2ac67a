//! What was foretold of an edit is what then happened: the same machines come and go, in the same order.

use std::collections::BTreeSet;

use capstan_controller::{Client, Deletion, KindName, Patch};
use capstan_object::{Key, Scope};
use capstan_provider_kit::Size;
use capstan_rehearsal::{Load, MachineOf, RehearsalError, Step, What};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::original::{Both, try_and_do};

type Done = BoxFuture<'static, Result<(), String>>;

fn sample() -> Vec<Value> {
    [
        include_str!("../../../../../examples/cni.yaml"),
        include_str!("../../../../../examples/sim-cluster.yaml"),
    ]
    .into_iter()
    .flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("YAML"))
    .collect()
}

async fn apply(client: &Client, mut object: Value) -> Result<(), String> {
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

/// The sample, with changes of its objects by kind.
async fn sample_with(client: Client, changes: Vec<(&'static str, Value)>) -> Result<(), String> {
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

fn merge(target: &mut Value, change: &Value) {
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

/// What happened, without what chance decides: the names of machines that were not there before, and times.
fn course(steps: &[Step]) -> Vec<(What, String, String, String)> {
    let told = |step: &Step| {
        let machine = &step.machine;
        let name = if machine.existed { machine.name.clone() } else { "new".to_owned() };
        (step.what, machine.of.clone(), machine.version.clone(), name)
    };
    // When two machines get ready at about the same time depends on more than a plan can know.
    steps.iter().filter(|step| step.what != What::Ready).map(told).collect()
}

fn counts(steps: &[Step]) -> (usize, usize) {
    let count = |what| steps.iter().filter(|step| step.what == what).count();
    (count(What::Created), count(What::Deleted))
}

fn loads(both: &Both) -> (Load, Load) {
    both.foretold.loads(|_| true, |machine| machine.infrastructure.as_deref().and_then(Size::in_spec))
}

fn foretold(prepare: fn(Client) -> Done, edit: fn(Client) -> Done) -> Both {
    let both = try_and_do(prepare, edit).expect("a course");
    assert_eq!(course(&both.foretold.steps), course(&both.happened));
    assert_eq!(both.foretold.before, [], "nothing was under way");
    assert!(both.foretold.rested);
    both
}

#[test]
fn a_new_cluster_comes_as_foretold() {
    let both = foretold(nothing, create);
    assert_eq!(counts(&both.happened), (2, 0));
    let (now, peak) = loads(&both);
    assert_eq!((now.machines, peak.machines), (0, 2));
    assert_eq!((peak.size.cpus, peak.size.memory_mib), (4, 8192));
    assert_eq!(both.foretold.without_network, [], "the sample brings a network");
    // Founding takes its time, and only then a worker joins.
    let ready: Vec<&Step> = both.foretold.steps.iter().filter(|step| step.what == What::Ready).collect();
    assert_eq!(ready.len(), 2);
    assert!(ready[0].machine.of.starts_with("KubeadmControlPlane/") && ready[0].seconds > 30, "{ready:?}");
}

#[test]
fn workers_are_added_and_taken_away_as_foretold() {
    let up =
        |client| sample_with(client, vec![("MachineDeployment", json!({"spec": {"replicas": 3}}))]).boxed();
    let both = foretold(create, up);
    assert_eq!(counts(&both.happened), (2, 0));
    let down = |client| {
        let changes = vec![
            ("KubeadmControlPlane", json!({"spec": {"replicas": 3}})),
            ("MachineDeployment", json!({"spec": {"replicas": 1}})),
        ];
        sample_with(client, changes).boxed()
    };
    let both = foretold(create_three, down);
    assert_eq!(counts(&both.happened), (0, 1));
    let gone = both.foretold.steps.iter().find(|step| step.what == What::Deleted).expect("one goes");
    assert!(gone.machine.existed, "{gone:?}");
}

#[test]
fn an_upgrade_replaces_machines_in_the_order_foretold() {
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
    let both = foretold(create_three, upgrade);
    assert_eq!(counts(&both.happened), (5, 5));
    let (now, peak) = loads(&both);
    let more = peak.machines - now.machines;
    assert!((1..=2).contains(&more), "{more} machines more than before");
}

#[test]
fn a_template_that_changes_rolls_the_machines_foretold() {
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
    let both = foretold(create, roll);
    assert_eq!(counts(&both.happened), (1, 1));
    assert_eq!(loads(&both).1.size.cpus, 2 + 2 + 4, "the new one comes before the old one goes");
}

#[test]
fn a_deployment_that_is_deleted_takes_the_machines_foretold() {
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
    let both = foretold(create, delete);
    assert_eq!(counts(&both.happened), (0, 1));
}

#[test]
fn a_cluster_that_is_deleted_goes_in_the_order_foretold() {
    let delete = |client: Client| {
        let deleted = async move {
            let kind = KindName::namespaced("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
            let deleted = client.delete(&kind, &Key::new("default", "quick"), &Deletion::default()).await;
            deleted.map(drop).map_err(|error| error.to_string())
        };
        deleted.boxed()
    };
    let both = try_and_do(create_three, delete).expect("a course");
    assert!(both.foretold.rested);
    let gone = |steps: &[Step]| -> Vec<MachineOf> {
        let gone = steps.iter().filter(|step| step.what == What::Deleted);
        gone.map(|step| step.machine.clone()).collect()
    };
    // Which of those that go at the same time is gone first depends on more than a plan can know.
    let owners = |steps: &[Step]| gone(steps).into_iter().map(|machine| machine.of).collect::<Vec<_>>();
    let names = |steps: &[Step]| gone(steps).into_iter().map(|machine| machine.name).collect::<BTreeSet<_>>();
    assert_eq!(owners(&both.foretold.steps), owners(&both.happened));
    assert_eq!(names(&both.foretold.steps), names(&both.happened));
    let (workers, control_plane) = ("MachineDeployment/quick-workers", "KubeadmControlPlane/quick");
    assert_eq!(owners(&both.happened), [workers, workers, control_plane, control_plane, control_plane]);
}

#[test]
fn a_cluster_that_nobody_brings_a_network_is_planned_as_if_somebody_did() {
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
    let both = foretold(nothing, bare);
    assert_eq!(counts(&both.foretold.steps), (2, 0));
    let ready = both.foretold.steps.iter().filter(|step| step.what == What::Ready).count();
    assert_eq!(ready, 2, "{:?}", both.foretold.steps);
    assert_eq!(both.foretold.without_network, [Key::new("default", "quick")]);
}

#[test]
fn a_manifest_that_says_what_is_so_leads_to_nothing() {
    let both = foretold(create, create);
    assert_eq!(both.foretold.steps, []);
    let (now, peak) = loads(&both);
    assert_eq!(now, peak);
}

#[test]
fn an_edit_that_the_server_refuses_is_refused_in_its_words() {
    let wrong =
        |client| sample_with(client, vec![("KubeadmControlPlane", json!({"spec": {"replicas": 2}}))]).boxed();
    match try_and_do(create, wrong) {
        Err(RehearsalError::Refused(said)) => assert!(said.contains("spec.replicas"), "{said}"),
        other => panic!("{:?}", other.map(|both| both.happened)),
    }
}
