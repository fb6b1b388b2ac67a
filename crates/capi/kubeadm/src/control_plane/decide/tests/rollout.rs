//! Rolling out changes, and changing machines in place.

use super::*;

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
