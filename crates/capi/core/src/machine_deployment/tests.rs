use std::sync::Arc;

use capstan_capi_types::core::{MachineDeployment, annotation, label};
use capstan_controller::{KindName, NoCall, Patch};
use capstan_object::kstatus::Progress;
use capstan_object::{Conditions, ObjectMeta, OwnerReference, to_value};

use super::*;
use crate::contract::{ContractVersion, External, Lookup};
use crate::machine_deployment::Observed;
use crate::names::COUNTER;
use crate::testing::at;

fn cluster() -> Cluster {
    let metadata = ObjectMeta { uid: "c".to_owned(), ..ObjectMeta::named("ns", "prod") };
    Cluster { metadata, ..Cluster::default() }
}

fn deployment(version: &str, replicas: i32) -> MachineDeployment {
    let metadata = ObjectMeta { uid: "d".to_owned(), generation: 1, ..ObjectMeta::named("ns", "workers") };
    let mut deployment = MachineDeployment { metadata, ..MachineDeployment::default() };
    deployment.spec.cluster_name = "prod".to_owned();
    deployment.spec.replicas = Some(replicas);
    deployment.spec.selector.match_labels.insert("pool".to_owned(), "workers".to_owned());
    deployment.spec.template.metadata.labels.insert("pool".to_owned(), "workers".to_owned());
    let template = &mut deployment.spec.template.spec;
    template.cluster_name = "prod".to_owned();
    template.version = version.to_owned();
    template.infrastructure_ref.kind = "SimMachineTemplate".to_owned();
    template.infrastructure_ref.name = "small".to_owned();
    template.infrastructure_ref.api_group = "infra.x".to_owned();
    deployment
}

fn template() -> Lookup {
    let kind = KindName::namespaced("infra.x", "v1", "SimMachineTemplate", "simmachinetemplates");
    let owner = OwnerReference::to(&cluster());
    let value =
        serde_json::json!({"metadata": {"name": "small", "namespace": "ns", "ownerReferences": [owner]}});
    Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn seen(sets: Vec<MachineSet>) -> Observed {
    Observed {
        cluster: Some(Arc::new(cluster())),
        sets: sets.into_iter().map(Arc::new).collect(),
        infrastructure_template: template(),
        ..Observed::default()
    }
}

fn decided(deployment: &MachineDeployment, seen: Observed) -> Decided {
    decide(&Look::new(Arc::new(deployment.clone()), seen, at(1000)))
}

/// The set that a deployment creates, as the API server would have stored it.
fn created(deployment: &MachineDeployment) -> MachineSet {
    let decision = decided(deployment, seen(vec![]));
    let Some(Effect::Create { body, .. }) = decision.effects.first().map(|planned| &planned.effect) else {
        panic!("nothing is created")
    };
    let mut set: MachineSet = serde_json::from_value(body.clone()).expect("a MachineSet");
    set.metadata.uid = format!("uid-{}", set.metadata.name);
    set.metadata.resource_version = "1".to_owned();
    set.metadata.creation_timestamp = Some(at(0).into());
    set
}

fn with_machines(mut set: MachineSet, count: i32) -> MachineSet {
    set.spec.replicas = Some(count);
    let status = &mut set.status;
    status.replicas = Some(count);
    status.ready_replicas = Some(count);
    status.available_replicas = Some(count);
    status.up_to_date_replicas = Some(count);
    set
}

fn effects(decision: &Decided) -> Vec<String> {
    let reported = |effect: &Effect<NoCall>| match effect {
        Effect::Patch { target, patch: Patch::Merge(body), .. } => {
            let mut body = body.clone();
            if let Some(meta) = body["metadata"].as_object_mut() {
                meta.remove("resourceVersion");
            }
            if body["metadata"].as_object().is_some_and(serde_json::Map::is_empty) {
                body.as_object_mut().map(|body| body.remove("metadata"));
            }
            format!("{} {body}", target.key.name)
        }
        other => other.summary(),
    };
    decision.effects.iter().map(|planned| reported(&planned.effect)).collect()
}

#[test]
fn a_new_deployment_creates_a_complete_first_set() {
    let deployment = deployment("v1.33.0", 3);
    let set = created(&deployment);
    let unique = &set.metadata.labels[label::MACHINE_TEMPLATE_HASH];
    assert!(set.metadata.name.starts_with("workers-"));
    assert_eq!(set.spec.replicas, Some(3));
    assert_eq!(set.metadata.controller().map(|owner| owner.uid.as_str()), Some("d"));
    assert_eq!(set.metadata.labels[label::DEPLOYMENT_NAME], "workers");
    assert_eq!(&set.spec.selector.match_labels[label::MACHINE_TEMPLATE_HASH], unique);
    assert_eq!(&set.spec.template.metadata.labels[label::MACHINE_TEMPLATE_HASH], unique);
    for (key, value) in [
        (annotation::REVISION, "1"),
        (annotation::DESIRED_REPLICAS, "3"),
        (annotation::MAX_REPLICAS, "4"),
        (annotation::DISABLE_MACHINE_CREATE, "false"),
    ] {
        assert_eq!(set.metadata.annotations[key], value);
    }
    let decision = decided(&deployment, seen(vec![]));
    assert_eq!(decision.object.metadata.annotations[annotation::REVISION], "1");
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    assert_eq!(decision.object.metadata.owner_references[0].uid, "c");
}

#[test]
fn a_lost_response_retries_the_same_name_and_an_observed_set_advances_it() {
    let mut deployment = deployment("v1.33.0", 3);
    assert_eq!(created(&deployment).metadata.name, created(&deployment).metadata.name);
    let first = with_machines(created(&deployment), 3);
    deployment.spec.template.spec.version = "v1.34.0".to_owned();
    let decision = decided(&deployment, seen(vec![first.clone()]));
    assert_eq!(decision.object.metadata.annotations[COUNTER], "1");
    let Effect::Create { body, .. } = &decision.effects[0].effect else { panic!("a creation") };
    assert_ne!(body["metadata"]["name"], first.metadata.name.as_str());
    assert_eq!(body["metadata"]["annotations"][annotation::REVISION], "2");
}

#[test]
fn an_up_to_date_deployment_has_no_effects() {
    let mut deployment = deployment("v1.33.0", 3);
    let set = with_machines(created(&deployment), 3);
    deployment = decided(&deployment, seen(vec![set.clone()])).object;
    let decision = decided(&deployment, seen(vec![set]));
    assert_eq!(effects(&decision), Vec::<String>::new());
    assert_eq!(to_value(&decision.object).ok(), to_value(&deployment).ok());
    assert!(decision.object.status.conditions.is_condition_true(condition::AVAILABLE));
}

#[test]
fn in_place_fields_reach_the_sets_without_a_rollout() {
    let mut deployment = deployment("v1.33.0", 3);
    let set = with_machines(created(&deployment), 3);
    deployment.spec.template.spec.deletion.node_drain_timeout_seconds = Some(30);
    deployment.spec.template.metadata.labels.insert("tier".to_owned(), "gold".to_owned());
    let decision = decided(&deployment, seen(vec![set.clone()]));
    let [patch] = effects(&decision).try_into().expect("one effect");
    let name = &set.metadata.name;
    assert_eq!(
        patch,
        format!(
            r#"{name} {{"metadata":{{"annotations":{{"capstan.dev/propagated":"{{\"labels\":[\"pool\",\"tier\"]}}"}},"labels":{{"tier":"gold"}}}},"spec":{{"template":{{"metadata":{{"labels":{{"tier":"gold"}}}},"spec":{{"deletion":{{"nodeDrainTimeoutSeconds":30}}}}}}}}}}"#
        )
    );
    let mut labelled = set;
    labelled.metadata.labels.insert("tier".to_owned(), "gold".to_owned());
    labelled
        .metadata
        .annotations
        .insert("capstan.dev/propagated".to_owned(), r#"{"labels":["pool","tier"]}"#.to_owned());
    deployment.spec.template.spec.deletion.node_drain_timeout_seconds = None;
    deployment.spec.template.metadata.labels.remove("tier");
    let [patch] = effects(&decided(&deployment, seen(vec![labelled]))).try_into().expect("one effect");
    assert!(patch.contains(r#""labels":{"tier":null}"#), "{patch}");
}

#[test]
fn old_sets_follow_the_plan_and_are_deleted_when_empty() {
    let mut deployment = deployment("v1.33.0", 3);
    let old = with_machines(created(&deployment), 3);
    deployment.spec.template.spec.version = "v1.34.0".to_owned();
    deployment.metadata.annotations.insert(COUNTER.to_owned(), "1".to_owned());
    let mut new = with_machines(created(&deployment), 1);
    new.metadata.annotations.insert(annotation::REVISION.to_owned(), "2".to_owned());
    let decision = decided(&deployment, seen(vec![old.clone(), new.clone()]));
    assert_eq!(effects(&decision), [format!(r#"{} {{"spec":{{"replicas":2}}}}"#, old.metadata.name)]);

    deployment.status.observed_generation = 1;
    let (mut empty, full) = (with_machines(old, 0), with_machines(new, 3));
    empty.status.observed_generation = empty.metadata.generation;
    let decision = decided(&deployment, seen(vec![empty.clone(), full]));
    assert_eq!(
        effects(&decision),
        [format!("delete machinesets.cluster.x-k8s.io ns/{}", empty.metadata.name)]
    );
}

#[test]
fn a_paused_rollout_creates_no_set_and_scales_existing_ones() {
    let mut deployment = deployment("v1.33.0", 3);
    let set = with_machines(created(&deployment), 3);
    deployment.spec.paused = Some(true);
    deployment.spec.template.spec.version = "v1.34.0".to_owned();
    deployment.spec.replicas = Some(5);
    let [patch] = effects(&decided(&deployment, seen(vec![set]))).try_into().expect("one effect");
    assert!(patch.contains(r#""replicas":5"#), "{patch}");
}

#[test]
fn a_set_without_a_controller_is_adopted_before_anything_else() {
    let deployment = deployment("v1.33.0", 3);
    let mut orphan = with_machines(created(&deployment), 3);
    orphan.metadata.owner_references.clear();
    let [patch] = effects(&decided(&deployment, seen(vec![orphan]))).try_into().expect("one effect");
    assert!(patch.contains(r#""ownerReferences":[{"#) && patch.contains(r#""controller":true"#), "{patch}");
}

#[test]
fn a_deployment_is_deleted_after_its_sets() {
    let mut deployment = deployment("v1.33.0", 3);
    let set = with_machines(created(&deployment), 3);
    deployment.metadata.finalizers = vec![FINALIZER.to_owned()];
    deployment.metadata.deletion_timestamp = Some(at(0).into());
    let decision = decided(&deployment, seen(vec![set.clone()]));
    assert_eq!(effects(&decision), [format!("delete machinesets.cluster.x-k8s.io ns/{}", set.metadata.name)]);
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    let decision = decided(&deployment, seen(vec![]));
    assert!(decision.effects.is_empty() && decision.object.metadata.finalizers.is_empty());
}

#[test]
fn nothing_is_created_without_templates_or_for_a_cluster_being_deleted() {
    let deployment = deployment("v1.33.0", 3);
    let without = Observed { infrastructure_template: Lookup::Missing, ..seen(vec![]) };
    let decision = decided(&deployment, without);
    assert!(decision.effects.is_empty() && decision.look_again.is_some());
    let scaling = decision.object.status.conditions.condition(condition::SCALING_UP).expect("a condition");
    assert_eq!(
        scaling.message,
        "Scaling up from 0 to 3 replicas is blocked because SimMachineTemplate does not exist"
    );

    let mut going = cluster();
    going.metadata.deletion_timestamp = Some(at(0).into());
    let decision = decided(&deployment, Observed { cluster: Some(Arc::new(going)), ..seen(vec![]) });
    assert!(decision.effects.is_empty());
}

#[test]
fn tools_that_wait_see_a_deployment_in_progress_until_every_machine_is_of_its_template() {
    let old = |count| with_machines(created(&deployment("v1.33.0", 3)), count);
    let new = |count| with_machines(created(&deployment("v1.34.0", 3)), count);
    let with = |change: fn(&mut MachineSet)| {
        let mut set = new(3);
        change(&mut set);
        set
    };
    // What the sets of a settled deployment look like comes from the deployment itself.
    let settled = |sets: Vec<MachineSet>| -> Vec<MachineSet> {
        let mut sets = sets;
        for _ in 0..3 {
            let decision = decided(&deployment("v1.34.0", 3), seen(sets.clone()));
            for planned in &decision.effects {
                let Effect::Patch { target, patch: Patch::Merge(body), .. } = &planned.effect else {
                    continue;
                };
                let set = sets.iter_mut().find(|set| set.metadata.name == *target.key.name).expect("a set");
                let mut value = to_value(&*set).expect("an object");
                json_patch(&mut value, body);
                let status = set.status.clone();
                *set = MachineSet { status, ..serde_json::from_value(value).expect("a set") };
            }
        }
        sets
    };
    for (what, sets, expected) in [
        ("no set of the template", vec![], Some("MachineSets are being changed")),
        ("another template", vec![old(3)], Some("MachineSets are being changed")),
        ("settled", settled(vec![new(3)]), None),
        (
            "a machine is not there",
            settled(vec![with(|set| set.status.ready_replicas = Some(2))]),
            Some("2 of 3 replicas are ready"),
        ),
        (
            "the set has not seen its size",
            settled(vec![with(|set| set.metadata.generation = 2)]),
            Some("generation 2 is not observed yet, the last one was 0"),
        ),
    ] {
        let decision = decided(&deployment("v1.34.0", 3), seen(sets));
        let mut object = decision.object;
        object.status.observed_generation = object.metadata.generation;
        let progress = Progress::of(&to_value(&object).expect("an object"));
        match (progress, expected) {
            (Progress::Current, None) => {}
            (Progress::InProgress(why), Some(expected)) if why.ends_with(expected) => {}
            (progress, expected) => panic!("{what}: {progress:?}, not {expected:?}"),
        }
    }
}

/// A merge patch.
fn json_patch(value: &mut serde_json::Value, patch: &serde_json::Value) {
    let Some(fields) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    for (name, patch) in fields {
        match (patch.is_null(), value.as_object_mut()) {
            (true, Some(object)) => drop(object.remove(name)),
            _ => json_patch(&mut value[name.as_str()], patch),
        }
    }
}
