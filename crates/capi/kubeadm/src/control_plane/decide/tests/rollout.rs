//! Rollouts and in-place changes.

use super::*;

#[test]
fn a_new_version_rolls_through_one_machine_at_a_time() {
    let mut test = TestCluster::running(
        3,
        "  kubeadmConfigSpec: {clusterConfiguration: {imageRepository: mirror.example}}",
    );
    test.control_plane.spec.version = "v1.35.0".to_owned();
    let done = summaries(&test.settle());
    for expected in [
        "bind kubeadm:cluster-admins in the workload cluster",
        "bind kubeadm:apiserver-kubelet-client in the workload cluster",
        "change ConfigMap kubeadm-config in the workload cluster",
        "create machines.cluster.x-k8s.io blue-cp",
    ] {
        assert!(done.iter().any(|text| text == expected), "{expected}: {done:#?}");
    }
    let config = test.reached.as_ref().and_then(|reached| reached.kubeadm_config.clone()).expect("it");
    let text = &config.data["ClusterConfiguration"];
    assert!(
        text.contains("kubernetesVersion: v1.35.0") && text.contains("dnsDomain: cluster.local"),
        "{text}"
    );
    assert!(text.contains("imageRepository: mirror.example"), "{text}");
    assert_eq!(test.machines.len(), 4, "one surge machine");
    assert_eq!(
        test.condition("RollingOut").2,
        "Rolling out 3 not up-to-date replicas\n* Version v1.34.1, v1.35.0 required"
    );
    for n in 4..=6 {
        let new = test.booting().expect("a machine");
        test.boot(&new, &format!("n{n}"));
        test.own(60);
        test.settle();
        test.drained().expect("an old one goes");
        test.settle();
        assert_eq!(test.reap().len(), 1);
        test.settle();
    }
    assert_eq!(test.members(), ["n4", "n5", "n6"]);
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(test.condition("RollingOut").0, "False");
    assert_eq!(test.control_plane.status.version, "v1.35.0");
    let proxy = test.reached.as_ref().and_then(|reached| reached.kube_proxy.clone()).expect("it");
    assert_eq!(
        proxy.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("mirror.example/kube-proxy:v1.35.0"))
    );
}

#[test]
fn a_version_is_taken_back_while_no_machine_of_it_has_joined() {
    for replicas in [1, 3] {
        let mut test = TestCluster::running(replicas, "");
        let before: Vec<String> = test.machines.keys().cloned().collect();
        test.control_plane.spec.version = "v1.35.0".to_owned();
        test.settle();
        let failed = test.booting().expect("a machine of the new version");
        test.own(60);
        test.control_plane.spec.version = "v1.34.1".to_owned();
        let done = test.settle();
        assert!(
            done.iter().any(|text| *text == format!("delete machines.cluster.x-k8s.io fleet/{failed}")),
            "{done:#?}"
        );
        test.drained().expect("it goes");
        test.settle();
        assert_eq!(test.reap(), [failed]);
        test.settle();
        assert_eq!(test.settle(), NOTHING);
        assert_eq!(test.machines.keys().cloned().collect::<Vec<_>>(), before, "nothing else was replaced");
        assert_eq!(test.condition("RollingOut").0, "False");
        let config = test.reached.as_ref().and_then(|reached| reached.kubeadm_config.clone()).expect("it");
        assert!(config.data["ClusterConfiguration"].contains("kubernetesVersion: v1.34.1"));
    }
}

#[test]
fn bindings_that_were_not_read_are_not_created_again_and_again() {
    let mut test = TestCluster::running(1, "");
    test.control_plane.spec.version = "v1.35.0".to_owned();
    let mut seen = test.seen();
    let Workload::Reached(reached) = &mut seen.workload else { panic!("a workload cluster") };
    reached.bindings = None;
    let look = capstan_controller::Look::new(std::sync::Arc::new(test.control_plane.clone()), seen, test.now);
    let decision = decide(&Settings::default(), &look);
    let binds = decision.effects.iter().filter(|planned| planned.effect.summary().starts_with("bind "));
    assert_eq!(binds.count(), 0);
}

#[test]
fn in_place_fields_are_changed_without_a_new_machine() {
    let mut test = TestCluster::running(1, "");
    let machine = test.machine_of("n1");
    let template = &mut test.control_plane.spec.machine_template;
    template.metadata.labels.insert("team".to_owned(), "blue".to_owned());
    template.spec.deletion.node_drain_timeout_seconds = Some(90);
    assert_eq!(test.settle().len(), 3, "the machine, its configuration and its infrastructure");
    assert_eq!(test.machines[&machine].metadata.labels["team"], "blue");
    assert_eq!(test.machines[&machine].spec.deletion.node_drain_timeout_seconds, Some(90));
    assert_eq!(test.configs[&machine].metadata.labels["team"], "blue");
    assert_eq!(test.infrastructure[&machine]["metadata"]["labels"]["team"], "blue");
    test.control_plane.spec.machine_template.metadata.labels.clear();
    test.settle();
    assert!(!test.machines[&machine].metadata.labels.contains_key("team"));
    assert_eq!(test.settle(), NOTHING);
}

#[test]
fn machines_without_a_controller_are_adopted() {
    let mut test = TestCluster::running(1, "");
    let name = test.machine_of("n1");
    test.machines.get_mut(&name).expect("it").metadata.owner_references.clear();
    for secret in test.secrets.values_mut() {
        secret.metadata.owner_references = vec![object(
            "{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, name: c, uid: c, controller: true}",
        )];
    }
    let done = summaries(&test.settle());
    assert_eq!(done[0], "patch machines.cluster.x-k8s.io fleet/blue-cp");
    assert_eq!(done.iter().filter(|text| text.contains("secrets")).count(), 5, "{done:?}");
    assert_eq!(test.settle(), NOTHING);
    assert!(test.machines[&name].metadata.is_owned_by("kcp-uid"));

    let mut old = TestCluster::running(1, "");
    let machine = old.machines.get_mut(&name).expect("it");
    machine.metadata.owner_references.clear();
    machine.spec.version = "v1.32.0".to_owned();
    assert_eq!(old.settle(), NOTHING);
    assert_eq!(waits(&old)[0], "AdoptionFailed");
    let message = format!(
        "Could not adopt Machine fleet/{name}: its version (\"v1.32.0\") is outside supported +/- one minor version skew from KCP's (\"v1.34.1\")"
    );
    assert_eq!(warnings(&old), [("AdoptionFailed".to_owned(), message)]);

    let mut theirs = TestCluster::running(1, "");
    theirs.machines.get_mut(&name).expect("it").metadata.owner_references[0].uid = "other".to_owned();
    assert_eq!(theirs.settle(), NOTHING);
    assert_eq!(waits(&theirs)[0], "MixedManagement");
}

#[test]
fn certificate_expiry_is_recorded_and_triggers_a_rollout() {
    let mut test = TestCluster::running(3, "  rollout: {before: {certificatesExpiryDays: 30}}");
    let machine = test.machine_of("n1");
    let end = moment("2027-11-15T08:00:00Z");
    test.reached.as_mut().expect("inside").expiries.insert("n1".to_owned(), end);
    let done = test.settle();
    assert_eq!(summaries(&done), ["patch kubeadmconfigs.bootstrap.cluster.x-k8s.io fleet/blue-cp"]);
    let expiry = &test.configs[&machine].metadata.annotations["machine.cluster.x-k8s.io/certificates-expiry"];
    assert_eq!(expiry, "2027-11-15T08:00:00Z");
    assert_eq!(test.settle(), NOTHING);
    let found = test.machines.get_mut(&machine).expect("it");
    found.status.certificates_expiry_date = Some(Time::new(end));
    test.now = moment("2027-04-01T00:00:00Z");
    assert_eq!(test.settle(), NOTHING);
    let soon = Time::new(moment("2027-04-20T00:00:00Z"));
    test.machines.get_mut(&machine).expect("it").status.certificates_expiry_date = Some(soon);
    test.settle();
    assert_eq!(test.machine_condition(&machine, "UpToDate").1, "* Certificates will expire soon");
    assert_eq!(test.machines.len(), 4, "its replacement comes first");
}
