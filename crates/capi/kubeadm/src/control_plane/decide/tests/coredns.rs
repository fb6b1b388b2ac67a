//! Upgrading CoreDNS.

use super::*;

/// CoreDNS as kubeadm installs it.
fn with_coredns(tag: &str) -> TestCluster {
    let rest = format!("  kubeadmConfigSpec: {{clusterConfiguration: {{dns: {{imageTag: {tag}}}}}}}");
    let mut test = TestCluster::running(1, &rest);
    let reached = test.reached.as_mut().expect("inside");
    reached.coredns = Some(json!({
        "metadata": {"resourceVersion": "1"},
        "spec": {"template": {"spec": {
            "containers": [{"name": "coredns", "image": "registry.example/coredns/coredns:v1.11.3"}],
            "volumes": [{"name": "config-volume", "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}],
        }}},
    }));
    reached.coredns_config = Some(object(
        "{metadata: {name: coredns, resourceVersion: '1'}, data: {Corefile: \".:53 {\\n    # mine\\n    errors\\n    forward . /etc/resolv.conf\\n}\\n\"}}",
    ));
    test
}

#[test]
fn coredns_never_reads_an_unsupported_corefile() {
    let mut test = with_coredns("v1.12.1");
    assert_eq!(
        test.settle(),
        [
            "change ConfigMap kubeadm-config in the workload cluster",
            "change ConfigMap coredns in the workload cluster",
            "change Deployment coredns in the workload cluster",
            "change ConfigMap coredns in the workload cluster",
            "change Deployment coredns in the workload cluster",
        ]
    );
    assert_eq!(test.settle(), NOTHING);
    let reached = test.reached.as_ref().expect("inside");
    let deployment = reached.coredns.as_ref().expect("it");
    let at = |path: &str| deployment.pointer(path).cloned().unwrap_or_default();
    assert_eq!(at("/spec/template/spec/containers/0/image"), "registry.example/coredns/coredns:v1.12.1");
    assert_eq!(at("/spec/template/spec/volumes/0/configMap/items/0/key"), "Corefile");
    let data = &reached.coredns_config.as_ref().expect("it").data;
    assert!(data["Corefile-backup"].contains("# mine"), "{data:?}");
    assert!(!data["Corefile"].contains("# mine") && data["Corefile"].contains("forward"), "{data:?}");
    let kubeadm = &reached.kubeadm_config.as_ref().expect("it").data["ClusterConfiguration"];
    assert!(kubeadm.contains("imageTag: v1.12.1"), "{kubeadm}");
}

#[test]
fn an_interrupted_coredns_upgrade_completes() {
    let mut test = with_coredns("v1.11.3");
    let key = "/spec/template/spec/volumes/0/configMap/items/0/key";
    let reached = test.reached.as_mut().expect("inside");
    let read = reached.coredns.as_mut().and_then(|deployment| deployment.pointer_mut(key)).expect("it");
    *read = json!("Corefile-backup");
    let data = &mut reached.coredns_config.as_mut().expect("it").data;
    let kept = data.insert("Corefile".to_owned(), ".:53 {\n    something newer\n}\n".to_owned()).expect("it");
    data.insert("Corefile-backup".to_owned(), kept.clone());
    test.settle();
    assert_eq!(test.settle(), NOTHING);
    let reached = test.reached.as_ref().expect("inside");
    assert_eq!(
        reached.coredns.as_ref().and_then(|deployment| deployment.pointer(key)),
        Some(&json!("Corefile"))
    );
    assert_eq!(reached.coredns_config.as_ref().expect("it").data["Corefile"], kept);
}

#[test]
fn coredns_is_left_alone_if_configured_and_not_downgraded() {
    let mut skipped = with_coredns("v1.12.1");
    let skip = "controlplane.cluster.x-k8s.io/skip-coredns".to_owned();
    skipped.control_plane.metadata.annotations.insert(skip, String::new());
    assert_eq!(skipped.settle(), NOTHING);
    let mut older = with_coredns("v1.10.1");
    let done = older.settle();
    assert!(!done.contains(&"change ConfigMap coredns in the workload cluster".to_owned()), "{done:?}");
    assert_eq!(waits(&older), ["CoreDNSHeld"]);
}
