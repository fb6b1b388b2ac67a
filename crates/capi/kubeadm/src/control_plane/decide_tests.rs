use capstan_capi_types::bootstrap;
use capstan_capi_types::core::Machine;
use capstan_object::{Conditions, Time};
use jiff::SignedDuration;
use serde_json::json;

use super::world::{World, moment, words};
use super::*;
use crate::certificates::server_of;
use crate::testing::object;
use capstan_object::OwnerReference;

const IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
const FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
const NOTHING: [&str; 0] = [];

fn waits(world: &World) -> Vec<String> {
    world.decided().waits.into_iter().map(|wait| wait.reason).collect()
}

#[test]
fn a_control_plane_is_built_machine_by_machine() {
    let mut world = World::new(3, "");
    assert_eq!(
        words(&world.settle()),
        [
            "create secrets blue-ca",
            "create secrets blue-etcd",
            "create secrets blue-proxy",
            "create secrets blue-sa",
            "create secrets blue-kubeconfig",
            "create simmachines.infrastructure.cluster.x-k8s.io blue-cp",
            "create kubeadmconfigs.bootstrap.cluster.x-k8s.io blue-cp",
            "create machines.cluster.x-k8s.io blue-cp",
            "patch machines.cluster.x-k8s.io fleet/blue-cp/status",
        ]
    );
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(waits(&world)[0], "WaitingForFirstControlPlane");
    assert_eq!(world.condition("Available").2, "Control plane not yet initialized");
    let first = world.booting().expect("the first");
    let config = &world.configs[&first];
    assert!(config.spec.join_configuration.control_plane.is_none(), "the first machine does not join");
    let made = &world.machines[&first];
    assert_eq!(made.spec.version, "v1.34.1");
    assert_eq!(made.spec.readiness_gates.len(), 6);
    assert!(made.metadata.annotations.keys().any(|key| key.ends_with("/kcp-cleanup")));

    world.boot(&first, "n1");
    assert!(words(&world.settle()).contains(&"create machines.cluster.x-k8s.io blue-cp".to_owned()));
    assert_eq!(world.condition("Initialized").0, "True");
    assert_eq!(world.machines.len(), 2, "the second comes once the first is whole");
    let second = world.booting().expect("the second");
    assert!(world.configs[&second].spec.join_configuration.control_plane.is_some());
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(
        world.condition("ScalingUp").2,
        format!("Scaling up from 2 to 3 replicas is blocked because:\n* machine {second} has no node yet")
    );
    world.boot(&second, "n2");
    world.settle();
    let third = world.booting().expect("the third");
    world.boot(&third, "n3");
    world.settle();
    assert_eq!(world.settle(), NOTHING);
    for kind in ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "CertificatesAvailable"]
    {
        assert_eq!(world.condition(kind).0, "True", "{kind}: {}", world.condition(kind).2);
    }
    let status = &world.control_plane.status;
    assert_eq!((status.replicas, status.up_to_date_replicas), (Some(3), Some(3)));
    assert_eq!(status.version, "v1.34.1");
    assert_eq!(status.selector, "cluster.x-k8s.io/cluster-name=blue,cluster.x-k8s.io/control-plane");
}

#[test]
fn nothing_is_made_before_infrastructure_and_endpoint_are_there() {
    let mut world = World::new(1, "");
    world.cluster.status.initialization.infrastructure_provisioned = None;
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(waits(&world), ["WaitingForInfrastructure"]);
    world.cluster.status.initialization.infrastructure_provisioned = Some(true);
    world.cluster.spec.control_plane_endpoint = object("{}");
    assert_eq!(world.settle().len(), 4, "certificates need no endpoint");
    assert_eq!(waits(&world), ["WaitingForEndpoint"]);
    world.cluster.spec.control_plane_endpoint = object("{host: 10.0.0.9, port: 6443}");
    world.has_template = false;
    assert_eq!(world.settle(), ["create secrets blue-kubeconfig"]);
    assert_eq!(server_of(&world.secrets["blue-kubeconfig"], "blue").as_deref(), Ok("https://10.0.0.9:6443"));
    assert_eq!(
        world.condition("ScalingUp").2,
        "Scaling up from 0 to 1 replicas is blocked because:\n* SimMachineTemplate does not exist"
    );
}

#[test]
fn a_machine_goes_after_its_leadership_and_before_its_member() {
    let mut world = World::running(3, "");
    let oldest = world.machine_of("n1");
    world.control_plane.spec.replicas = Some(1);
    let delete = format!("delete machines.cluster.x-k8s.io fleet/{oldest}");
    let done = world.settle();
    assert_eq!(done[..2], ["move etcd's leadership from n1 to n3".to_owned(), delete]);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(waits(&world)[0], "WaitingForMachines", "core drains it first");
    assert_eq!(world.members(), ["n1", "n2", "n3"]);

    world.drained();
    let done = world.settle();
    assert_eq!(done[0], "remove etcd member n1");
    assert_eq!(world.members(), ["n2", "n3"]);
    assert_eq!(world.machines.len(), 3, "nothing else goes before it is gone");
    assert_eq!(world.reap(), [oldest]);
    let done = world.settle();
    assert!(done.iter().any(|text| text.starts_with("delete machines")), "{done:?}");
    world.drained();
    world.settle();
    assert_eq!(world.reap().len(), 1);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.members(), ["n3"]);
    assert_eq!(world.condition("Available").0, "True");
}

#[test]
fn a_hook_of_somebody_else_is_waited_for() {
    let mut world = World::running(3, "");
    world.control_plane.spec.replicas = Some(1);
    world.settle();
    let going = world.drained().expect("a machine that goes");
    let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup".to_owned();
    world.machines.get_mut(&going).expect("it").metadata.annotations.insert(hook.clone(), String::new());
    assert_eq!(world.settle(), NOTHING);
    world.machines.get_mut(&going).expect("it").metadata.annotations.remove(&hook);
    assert_eq!(world.settle()[0], "remove etcd member n1");
}

#[test]
fn a_new_version_rolls_through_one_machine_at_a_time() {
    let mut world =
        World::running(3, "  kubeadmConfigSpec: {clusterConfiguration: {imageRepository: mirror.example}}");
    world.control_plane.spec.version = "v1.35.0".to_owned();
    let done = words(&world.settle());
    for expected in [
        "bind kubeadm:cluster-admins in the workload cluster",
        "bind kubeadm:apiserver-kubelet-client in the workload cluster",
        "change ConfigMap kubeadm-config in the workload cluster",
        "create machines.cluster.x-k8s.io blue-cp",
    ] {
        assert!(done.iter().any(|text| text == expected), "{expected}: {done:#?}");
    }
    let config = world.inside.as_ref().and_then(|inside| inside.kubeadm_config.clone()).expect("it");
    let text = &config.data["ClusterConfiguration"];
    assert!(
        text.contains("kubernetesVersion: v1.35.0") && text.contains("dnsDomain: cluster.local"),
        "{text}"
    );
    assert!(text.contains("imageRepository: mirror.example"), "{text}");
    assert_eq!(world.machines.len(), 4, "one more than wanted, for a while");
    assert_eq!(
        world.condition("RollingOut").2,
        "Rolling out 3 not up-to-date replicas\n* Version v1.34.1, v1.35.0 required"
    );
    for n in 4..=6 {
        let new = world.booting().expect("a machine");
        world.boot(&new, &format!("n{n}"));
        world.pass(60);
        world.settle();
        world.drained().expect("an old one goes");
        world.settle();
        assert_eq!(world.reap().len(), 1);
        world.settle();
    }
    assert_eq!(world.members(), ["n4", "n5", "n6"]);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.condition("RollingOut").0, "False");
    assert_eq!(world.control_plane.status.version, "v1.35.0");
    let proxy = world.inside.as_ref().and_then(|inside| inside.kube_proxy.clone()).expect("it");
    assert_eq!(
        proxy.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("mirror.example/kube-proxy:v1.35.0"))
    );
}

#[test]
fn a_broken_machine_is_replaced_and_the_replacement_remembers_it() {
    let mut world = World::running(3, "");
    let broken = world.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&broken, kind, "False");
    }
    let done = world.settle();
    assert!(done.contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")), "{done:?}");
    let record = world.control_plane.metadata.annotations[IN_PROGRESS].clone();
    assert_eq!(world.control_plane.status.last_remediation.machine, broken);
    assert_eq!(world.condition("Remediating").2, format!("* Machine {broken}: Machine is deleting"));
    world.drained();
    world.settle();
    world.reap();
    world.settle();
    let new = world.booting().expect("a replacement");
    assert_eq!(world.machines[&new].metadata.annotations[FOR], record);
    assert!(!world.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
    world.boot(&new, "n4");
    world.settle();
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.members(), ["n1", "n3", "n4"]);
}

#[test]
fn a_replacement_that_was_on_record_and_not_begun_is_gone_on_with() {
    let mut world = World::running(3, "");
    let broken = world.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&broken, kind, "False");
    }
    let record = json!({"machine": broken, "timestamp": Time::new(world.now).to_string(), "retryCount": 0});
    world.control_plane.metadata.annotations.insert(IN_PROGRESS.to_owned(), record.to_string());
    let mut recovered = World::running(3, "");
    recovered.control_plane.metadata.annotations = world.control_plane.metadata.annotations.clone();
    assert!(world.settle().contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")));
    assert_eq!(recovered.settle(), NOTHING, "it became healthy before it was deleted");
    assert!(!recovered.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
}

#[test]
fn the_only_machine_is_not_replaced_and_says_why() {
    let mut world = World::running(1, "");
    let only = world.machine_of("n1");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&only, kind, "False");
    }
    world.settle();
    assert_eq!(world.machine_condition(&only, "OwnerRemediated").1, "the only machine is not replaced");
    world.set(&only, "HealthCheckSucceeded", "True");
    world.settle();
    assert!(world.machines[&only].status.conditions.condition("OwnerRemediated").is_none(), "it recovered");
}

#[test]
fn a_member_is_found_by_its_node_before_the_machine_names_that() {
    let mut world = World::running(3, "");
    let joined = world.machine_of("n2");
    let machine = world.machines.get_mut(&joined).expect("it");
    machine.status.node_ref.name.clear();
    machine.metadata.deletion_timestamp = Some(Time::new(world.now));
    world.drained();
    let done = world.settle();
    assert!(done.contains(&"remove etcd member n2".to_owned()), "{done:?}");
    assert_eq!(world.members(), ["n1", "n3"]);
}

#[test]
fn a_machine_does_not_go_while_etcd_does_not_say_who_is_in_it() {
    let mut world = World::running(3, "");
    let joined = world.machine_of("n2");
    let machine = world.machines.get_mut(&joined).expect("it");
    machine.status.node_ref.name.clear();
    machine.spec.provider_id.clear();
    machine.metadata.deletion_timestamp = Some(Time::new(world.now));
    world.drained();
    world.inside.as_mut().expect("inside").etcd = EtcdSeen::Failed("no answer".to_owned());
    world.settle();
    assert_eq!(waits(&world), ["EtcdUnknown"]);
    assert!(world.reap().is_empty(), "its hook holds it");
}

#[test]
fn a_member_without_machine_is_removed_if_the_quorum_stands_it() {
    let mut world = World::running(3, "");
    let stranger = EtcdMember { id: 9, name: "n0".to_owned(), ..EtcdMember::default() };
    world.etcd(|members, _| members.push(stranger));
    assert_eq!(world.settle(), ["remove etcd member n0"]);
    assert_eq!(world.condition("EtcdClusterHealthy").0, "True");

    let mut starting = World::running(3, "");
    starting.control_plane.spec.replicas = Some(5);
    starting.settle();
    starting.etcd(|members, _| members.push(EtcdMember { id: 9, ..EtcdMember::default() }));
    assert_eq!(starting.settle(), NOTHING, "it may be the one of the machine that boots");
    assert!(starting.condition("EtcdClusterHealthy").2.contains("Name not yet assigned"));
}

#[test]
fn a_control_plane_goes_after_its_workers_and_all_at_once() {
    let mut world = World::running(3, "");
    world.control_plane.metadata.deletion_timestamp = Some(Time::new(world.now));
    let worker: Machine = object("{metadata: {name: w1, namespace: fleet}, spec: {clusterName: blue}}");
    world.machines.insert("w1".to_owned(), worker);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(
        world.condition("Deleting").2,
        "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: w1"
    );
    world.machines.remove("w1");
    let done = words(&world.settle());
    assert_eq!(
        done,
        ["patch machines.cluster.x-k8s.io fleet/blue-cp", "delete machines.cluster.x-k8s.io fleet/blue-cp"]
    );
    assert_eq!(world.condition("Deleting").2, "Deleting 3 Machines");
    assert_eq!(world.reap().len(), 3);
    assert!(!world.control_plane.metadata.finalizers.is_empty());
    world.settle();
    assert!(world.control_plane.metadata.finalizers.is_empty());
}

#[test]
fn a_silent_cluster_is_taken_as_it_was_for_a_while() {
    let mut world = World::running(1, "");
    world.silent = Some("cluster fleet/blue does not answer: 3 probes in a row failed".to_owned());
    world.health.last_success = Some(world.now);
    world.pass(60);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.condition("EtcdClusterHealthy").0, "True");
    assert_eq!(waits(&world), ["WorkloadUnreachable"]);
    world.pass(600);
    world.settle();
    let (status, reason, message) = world.condition("ControlPlaneComponentsHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ConnectionDown"));
    assert!(message.starts_with("Last successful probe at 2026-11-15T"), "{message}");
    let machine = world.machine_of("n1");
    assert_eq!(world.machine_condition(&machine, "APIServerPodHealthy").0, "Unknown");
    assert_eq!(world.settle(), NOTHING);
    world.silent = None;
    world.settle();
    assert_eq!(world.condition("Available").0, "True");
}

#[test]
fn what_needs_no_new_machine_is_changed_in_place() {
    let mut world = World::running(1, "");
    let machine = world.machine_of("n1");
    let template = &mut world.control_plane.spec.machine_template;
    template.metadata.labels.insert("team".to_owned(), "blue".to_owned());
    template.spec.deletion.node_drain_timeout_seconds = Some(90);
    assert_eq!(world.settle().len(), 3, "the machine, its configuration and its infrastructure");
    assert_eq!(world.machines[&machine].metadata.labels["team"], "blue");
    assert_eq!(world.machines[&machine].spec.deletion.node_drain_timeout_seconds, Some(90));
    assert_eq!(world.configs[&machine].metadata.labels["team"], "blue");
    assert_eq!(world.infrastructure[&machine]["metadata"]["labels"]["team"], "blue");
    world.control_plane.spec.machine_template.metadata.labels.clear();
    world.settle();
    assert!(!world.machines[&machine].metadata.labels.contains_key("team"));
    assert_eq!(world.settle(), NOTHING);
}

#[test]
fn machines_that_nobody_controls_are_taken_over() {
    let mut world = World::running(1, "");
    let name = world.machine_of("n1");
    world.machines.get_mut(&name).expect("it").metadata.owner_references.clear();
    for secret in world.secrets.values_mut() {
        secret.metadata.owner_references = vec![object(
            "{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, name: c, uid: c, controller: true}",
        )];
    }
    let done = words(&world.settle());
    assert_eq!(done[0], "patch machines.cluster.x-k8s.io fleet/blue-cp");
    assert_eq!(done.iter().filter(|text| text.contains("secrets")).count(), 5, "{done:?}");
    assert_eq!(world.settle(), NOTHING);
    assert!(world.machines[&name].metadata.is_owned_by("kcp-uid"));

    let mut old = World::running(1, "");
    let machine = old.machines.get_mut(&name).expect("it");
    machine.metadata.owner_references.clear();
    machine.spec.version = "v1.32.0".to_owned();
    assert_eq!(old.settle(), NOTHING);
    assert_eq!(waits(&old)[0], "AdoptionFailed");

    let mut theirs = World::running(1, "");
    theirs.machines.get_mut(&name).expect("it").metadata.owner_references[0].uid = "other".to_owned();
    assert_eq!(theirs.settle(), NOTHING);
    assert_eq!(waits(&theirs)[0], "MixedManagement");
}

#[test]
fn certificates_that_users_gave_are_left_as_they_are() {
    let mut world = World::new(1, "");
    let mut made = World::new(1, "");
    made.settle();
    let mut given = made.secrets["blue-ca"].clone();
    given.kind = "Opaque".to_owned();
    given.metadata.owner_references.clear();
    world.secrets.insert("blue-ca".to_owned(), given.clone());
    let done = world.settle();
    assert!(!done.iter().any(|text| text.ends_with("secrets fleet/blue-ca")), "{done:?}");
    assert_eq!(world.secrets["blue-ca"], given);
}

#[test]
fn an_authority_that_is_lost_is_not_made_again() {
    let mut world = World::running(3, "");
    world.secrets.remove("blue-ca");
    assert_eq!(world.settle(), NOTHING);
    let (status, _, message) = world.condition("CertificatesAvailable");
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "Cluster certificate for ca is not available, please check cluster certificate secrets"
    );
    world.control_plane.spec.replicas = Some(5);
    assert_eq!(world.settle(), NOTHING, "nothing could join");
    assert_eq!(world.condition("Available").2, "* Control plane certificates are not available");
}

#[test]
fn the_kubeconfig_is_renewed_at_half_its_life() {
    let mut world = World::running(1, "");
    let before = world.secrets["blue-kubeconfig"].data.clone();
    world.now = moment("2027-05-01T00:00:00Z");
    assert_eq!(world.settle(), NOTHING);
    world.now = moment("2027-06-01T00:00:00Z");
    assert_eq!(world.settle(), ["patch secrets fleet/blue-kubeconfig"]);
    assert_ne!(world.secrets["blue-kubeconfig"].data, before);
    assert_eq!(world.settle(), NOTHING);
}

#[test]
fn what_was_made_for_a_machine_that_never_came_is_used_or_deleted() {
    let mut world = World::new(1, "");
    world.settle();
    let name = world.booting().expect("a machine");
    // The process died before the machine was made.
    world.machines.clear();
    world.control_plane.metadata.annotations.clear();
    let ours = OwnerReference::to(&world.control_plane);
    let config = world.configs.get_mut(&name).expect("a configuration");
    config.metadata.owner_references = vec![ours.clone()];
    world.infrastructure.get_mut(&name).expect("it")["metadata"]["ownerReferences"] = json!([ours]);
    let done = world.settle();
    assert_eq!(done[0], format!("create machines.cluster.x-k8s.io {name}"), "{done:?}");
    let mut late = World::running(1, "");
    let mut orphan = late.configs.values().next().expect("one").clone();
    orphan.metadata.name = "blue-cp-orphan".to_owned();
    orphan.metadata.owner_references = vec![ours];
    late.configs.insert("blue-cp-orphan".to_owned(), orphan);
    assert_eq!(late.settle(), ["delete kubeadmconfigs.bootstrap.cluster.x-k8s.io fleet/blue-cp-orphan"]);
}

#[test]
fn static_pods_say_how_a_machine_fares() {
    for (pod, expected) in [
        ("{phase: Running, conditions: [{type: Ready, status: 'True'}]}", ("True", "")),
        ("{phase: Pending}", ("False", "Waiting to be scheduled")),
        (
            "{phase: Pending, conditions: [{type: PodScheduled, status: 'True'}]}",
            ("False", "Running init containers"),
        ),
        ("{phase: Running}", ("False", "Waiting for startup or readiness probes")),
        (
            "{phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}",
            ("False", "CrashLoopBackOff"),
        ),
        ("{phase: Running, containerStatuses: [{state: {terminated: {reason: Error}}}]}", ("False", "Error")),
        ("{phase: Failed}", ("False", "All the containers have been terminated")),
        ("{phase: Unknown}", ("Unknown", "Pod is reporting Unknown status")),
    ] {
        let mut world = World::running(1, "");
        let pods = &mut world.inside.as_mut().expect("inside").pods;
        pods.insert("kube-scheduler-n1".to_owned(), Ok(object(&format!("status: {pod}"))));
        world.settle();
        let found = world.machine_condition(&world.machine_of("n1"), "SchedulerPodHealthy");
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{pod}");
    }
    let mut world = World::running(1, "");
    world.inside.as_mut().expect("inside").pods.remove("etcd-n1");
    world.settle();
    let name = world.machine_of("n1");
    assert_eq!(
        world.condition("ControlPlaneComponentsHealthy").2,
        format!("* Machine {name}:\n  * EtcdPodHealthy: Pod does not exist")
    );
    assert_eq!(world.decided().look_again, Some(std::time::Duration::from_secs(20)));
    world.pass(60);
    world.settle();
    assert_eq!(
        world.condition("Available").2,
        "* There are no Machines with healthy control plane components, at least 1 required"
    );
}

#[test]
fn nodes_without_machines_and_marks_are_told() {
    let mut world = World::running(1, "");
    let inside = world.inside.as_mut().expect("inside");
    let mut node = (*inside.nodes["n1"]).clone();
    node.spec.taints.clear();
    inside.nodes.insert("n1".to_owned(), std::sync::Arc::new(node.clone()));
    node.metadata.name = "stranger".to_owned();
    inside.nodes.insert("stranger".to_owned(), std::sync::Arc::new(node));
    world.settle();
    assert_eq!(
        world.condition("ControlPlaneComponentsHealthy").2,
        "* Control plane Node stranger does not have a corresponding Machine"
    );
    assert_eq!(
        world.machine_condition(&world.machine_of("n1"), "NodeKubeadmLabelsAndTaintsSet").1,
        "Node n1 does not have the node-role.kubernetes.io/control-plane:NoSchedule taint"
    );
}

#[test]
fn etcd_that_does_not_answer_is_told_and_nothing_goes_meanwhile() {
    let mut world = World::running(3, "");
    let inside = world.inside.as_mut().expect("inside");
    inside.etcd = EtcdSeen::Failed("Failed to connect to etcd: etcd-n1: refused".to_owned());
    world.control_plane.spec.replicas = Some(1);
    let done = world.settle();
    assert!(!done.iter().any(|text| text.starts_with("delete")), "{done:?}");
    let name = world.machine_of("n1");
    assert_eq!(
        world.machine_condition(&name, "EtcdMemberHealthy"),
        ("Unknown".to_owned(), "Failed to connect to etcd: etcd-n1: refused".to_owned())
    );
    world.pass(600);
    world.settle();
    assert_eq!(world.condition("Available").2, "Failed to get etcd members");
}

#[test]
fn the_end_of_certificates_is_written_down_and_acted_upon() {
    let mut world = World::running(3, "  rollout: {before: {certificatesExpiryDays: 30}}");
    let machine = world.machine_of("n1");
    let end = moment("2027-11-15T08:00:00Z");
    world.inside.as_mut().expect("inside").expiries.insert("n1".to_owned(), end);
    let done = world.settle();
    assert_eq!(words(&done), ["patch kubeadmconfigs.bootstrap.cluster.x-k8s.io fleet/blue-cp"]);
    let said = &world.configs[&machine].metadata.annotations["machine.cluster.x-k8s.io/certificates-expiry"];
    assert_eq!(said, "2027-11-15T08:00:00Z");
    assert_eq!(world.settle(), NOTHING);
    let found = world.machines.get_mut(&machine).expect("it");
    found.status.certificates_expiry_date = Some(Time::new(end));
    world.now = moment("2027-04-01T00:00:00Z");
    assert_eq!(world.settle(), NOTHING);
    let soon = Time::new(moment("2027-04-20T00:00:00Z"));
    world.machines.get_mut(&machine).expect("it").status.certificates_expiry_date = Some(soon);
    world.settle();
    assert_eq!(world.machine_condition(&machine, "UpToDate").1, "* Certificates will expire soon");
    assert_eq!(world.machines.len(), 4, "its replacement comes first");
}

/// CoreDNS as kubeadm installs it.
fn with_coredns(tag: &str) -> World {
    let rest = format!("  kubeadmConfigSpec: {{clusterConfiguration: {{dns: {{imageTag: {tag}}}}}}}");
    let mut world = World::running(1, &rest);
    let inside = world.inside.as_mut().expect("inside");
    inside.coredns = Some(json!({
        "metadata": {"resourceVersion": "1"},
        "spec": {"template": {"spec": {
            "containers": [{"name": "coredns", "image": "registry.example/coredns/coredns:v1.11.3"}],
            "volumes": [{"name": "config-volume", "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}],
        }}},
    }));
    inside.coredns_config = Some(object(
        "{metadata: {name: coredns, resourceVersion: '1'}, data: {Corefile: \".:53 {\\n    # mine\\n    errors\\n    forward . /etc/resolv.conf\\n}\\n\"}}",
    ));
    world
}

#[test]
fn coredns_never_reads_what_it_does_not_understand() {
    let mut world = with_coredns("v1.12.1");
    assert_eq!(
        world.settle(),
        [
            "change ConfigMap kubeadm-config in the workload cluster",
            "change ConfigMap coredns in the workload cluster",
            "change Deployment coredns in the workload cluster",
            "change ConfigMap coredns in the workload cluster",
            "change Deployment coredns in the workload cluster",
        ]
    );
    assert_eq!(world.settle(), NOTHING);
    let inside = world.inside.as_ref().expect("inside");
    let deployment = inside.coredns.as_ref().expect("it");
    let at = |path: &str| deployment.pointer(path).cloned().unwrap_or_default();
    assert_eq!(at("/spec/template/spec/containers/0/image"), "registry.example/coredns/coredns:v1.12.1");
    assert_eq!(at("/spec/template/spec/volumes/0/configMap/items/0/key"), "Corefile");
    let data = &inside.coredns_config.as_ref().expect("it").data;
    assert!(data["Corefile-backup"].contains("# mine"), "{data:?}");
    assert!(!data["Corefile"].contains("# mine") && data["Corefile"].contains("forward"), "{data:?}");
    let kubeadm = &inside.kubeadm_config.as_ref().expect("it").data["ClusterConfiguration"];
    assert!(kubeadm.contains("imageTag: v1.12.1"), "{kubeadm}");
}

#[test]
fn coredns_left_half_way_reads_its_corefile_in_the_end() {
    let mut world = with_coredns("v1.11.3");
    let key = "/spec/template/spec/volumes/0/configMap/items/0/key";
    let inside = world.inside.as_mut().expect("inside");
    let read = inside.coredns.as_mut().and_then(|deployment| deployment.pointer_mut(key)).expect("it");
    *read = json!("Corefile-backup");
    let data = &mut inside.coredns_config.as_mut().expect("it").data;
    let kept = data.insert("Corefile".to_owned(), ".:53 {\n    something newer\n}\n".to_owned()).expect("it");
    data.insert("Corefile-backup".to_owned(), kept.clone());
    world.settle();
    assert_eq!(world.settle(), NOTHING);
    let inside = world.inside.as_ref().expect("inside");
    assert_eq!(
        inside.coredns.as_ref().and_then(|deployment| deployment.pointer(key)),
        Some(&json!("Corefile"))
    );
    assert_eq!(inside.coredns_config.as_ref().expect("it").data["Corefile"], kept);
}

#[test]
fn coredns_has_a_path_of_its_own_in_the_registries_of_kubernetes() {
    for (image, asked, wanted) in [
        ("mirror.example/coredns:v1.12.1", "registry.k8s.io", "registry.k8s.io/coredns/coredns:v1.12.1"),
        ("mirror.example/coredns:v1.12.1", "registry.k8s.io/", "registry.k8s.io/coredns/coredns:v1.12.1"),
        ("mirror.example/coredns:v1.7.0", "k8s.gcr.io", "k8s.gcr.io/coredns:v1.7.0"),
        ("mirror.example/coredns:v1.8.0", "k8s.gcr.io", "k8s.gcr.io/coredns/coredns:v1.8.0"),
        ("mirror.example/mydns:v1.12.1", "registry.k8s.io", "registry.k8s.io/mydns:v1.12.1"),
        ("registry.k8s.io/coredns/coredns:v1.12.1", "mirror.example", "mirror.example/coredns:v1.12.1"),
        (
            "registry.k8s.io/coredns/coredns:v1.12.1",
            "registry.k8s.io",
            "registry.k8s.io/coredns/coredns:v1.12.1",
        ),
    ] {
        let mut config = bootstrap::ClusterConfiguration::default();
        config.dns.image_repository = asked.to_owned();
        let found = coredns::wanted(&config, upkeep::Image::parse(image)).expect("a version");
        assert_eq!(found.to_string(), wanted, "{image}, asked for {asked}");
    }
}

#[test]
fn coredns_is_left_alone_if_told_so_and_not_downgraded() {
    let mut skipped = with_coredns("v1.12.1");
    let skip = "controlplane.cluster.x-k8s.io/skip-coredns".to_owned();
    skipped.control_plane.metadata.annotations.insert(skip, String::new());
    assert_eq!(skipped.settle(), NOTHING);
    let mut older = with_coredns("v1.10.1");
    let done = older.settle();
    assert!(!done.contains(&"change ConfigMap coredns in the workload cluster".to_owned()), "{done:?}");
    assert_eq!(waits(&older), ["CoreDNSHeld"]);
}

#[test]
fn a_paused_control_plane_is_left_alone() {
    let world = World::new(1, "");
    let seen = World::new(1, "").decided();
    assert!(!seen.effects.is_empty());
    let mut look = capstan_controller::Look::<ControlPlaneController>::new(
        std::sync::Arc::new(world.control_plane.clone()),
        world.seen(),
        world.now + SignedDuration::from_secs(1),
    );
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = decide(&Settings::default(), &look);
    assert!(decision.effects.is_empty());
    let paused = decision.object.status.conditions.condition("Paused").expect("it").clone();
    assert_eq!(paused.message, "Cluster spec.paused is set to true");
}
