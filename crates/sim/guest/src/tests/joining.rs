//! kubeadm init and join.

use super::{names, node_kind, pod_kind};
use crate::request::{Discovery, JoinRequest};
use crate::testing::{TestSite, condition, get, kind, list, pass};

#[tokio::test(start_paused = true)]
async fn a_new_cluster_has_kubeadms_objects() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let client = test_site.client();
    let node = get(&client, &node_kind(), "", "cp-1").await.expect("a Node");
    assert_eq!(node["spec"]["providerID"], "sim://vm-1");
    assert_eq!(node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"], "");
    pass(5).await;
    let node = get(&client, &node_kind(), "", "cp-1").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "False");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.36.0");
    let pods = list(&client, &pod_kind(), "kube-system").await;
    let all = names(&pods);
    for expected in
        ["etcd-cp-1", "kube-apiserver-cp-1", "kube-controller-manager-cp-1", "kube-scheduler-cp-1"]
    {
        assert!(all.contains(&expected), "{expected} in {all:?}");
        let pod = pods.iter().find(|pod| pod["metadata"]["name"] == expected).expect("a Pod");
        assert_eq!(condition(pod, "Ready"), "True", "{expected}");
    }
    let config_maps = list(&client, &kind("", "ConfigMap", "configmaps"), "kube-system").await;
    for expected in ["kubeadm-config", "kubelet-config", "kube-proxy", "coredns"] {
        assert!(names(&config_maps).contains(&expected), "{expected}");
    }
    let info = get(&client, &kind("", "ConfigMap", "configmaps"), "kube-public", "cluster-info").await;
    assert!(info.expect("cluster-info")["data"]["jws-kubeconfig-abcdef"].is_string());
    let lease = kind("coordination.k8s.io", "Lease", "leases");
    assert!(get(&client, &lease, "kube-node-lease", "cp-1").await.is_some());
    let dns = get(&client, &kind("", "Service", "services"), "kube-system", "kube-dns").await;
    assert_eq!(dns.expect("a Service")["spec"]["clusterIP"], "10.96.0.10");
}

#[tokio::test(start_paused = true)]
async fn a_worker_joins_with_a_token() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    test_site.worker("worker-1").await;
    let node = get(&test_site.client(), &node_kind(), "", "worker-1").await.expect("a Node");
    assert_eq!(node["spec"]["providerID"], "sim://vm-2");
    assert!(node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane").is_none());
}

#[tokio::test(start_paused = true)]
async fn kubeadm_rejects_untrusted_clusters() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let with = |discovery: &dyn Fn(&mut String, &mut Vec<String>)| {
        let (mut token, mut hashes) = (crate::testing::TOKEN.to_owned(), vec![test_site.ca_hash()]);
        discovery(&mut token, &mut hashes);
        Discovery::Token {
            endpoint: test_site.endpoint.to_string(),
            token,
            ca_cert_hashes: hashes,
            unsafe_skip_ca_verification: false,
        }
    };
    let cases = [
        (with(&|_, hashes| hashes[0] = format!("sha256:{}", "0".repeat(64))), "are pinned"),
        (with(&|token, _| *token = "abcdef.fedcba9876543210".to_owned()), "failed to verify JWS signature"),
        (with(&|token, _| *token = "zzzzzz.0123456789abcdef".to_owned()), "could not find a JWS signature"),
        (with(&|token, _| *token = "nonsense".to_owned()), "was not of the form"),
    ];
    for (discovery, expected) in cases {
        let node = test_site.machine("stranger").await;
        let request = JoinRequest { discovery, ..test_site.join_request(node) };
        let error = test_site.join(request).await.expect_err("refused");
        assert_eq!(error.phase, "preflight");
        assert!(error.why.contains(expected), "{}", error.why);
        assert!(!error.why.contains("fedcba"), "the token is a secret");
    }
    assert!(get(&test_site.client(), &node_kind(), "", "stranger").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_rejected() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    pass(3601).await;
    let secrets = kind("", "Secret", "secrets");
    assert!(get(&test_site.client(), &secrets, "kube-system", "bootstrap-token-abcdef").await.is_none());
    let node = test_site.machine("late").await;
    let error = test_site.join(test_site.join_request(node)).await.expect_err("refused");
    assert!(error.why.contains("could not find a JWS signature"), "{}", error.why);
}

#[tokio::test(start_paused = true)]
async fn discovery_times_out_after_five_minutes() {
    let mut test_site = TestSite::new();
    let node = test_site.machine("alone").await;
    let before = test_site.env.now();
    let error = test_site.join(test_site.join_request(node)).await.expect_err("nothing listens");
    assert!(error.why.contains("connect: connection refused"), "{}", error.why);
    let waited = test_site.env.now().duration_since(before).as_secs();
    assert!((290..=300).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn unsupported_version_skew_is_rejected() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    for (version, control_plane, expected) in [
        ("v1.38.0", false, "only supports deploying clusters with the control plane version >= 1.37.0"),
        ("v1.37.0", true, "the kubelet version is higher than the control plane version"),
    ] {
        let mut node = test_site.machine("newer").await;
        node.kubelet_version = version.to_owned();
        let control_plane = control_plane.then(|| test_site.shared_files());
        let request = JoinRequest { control_plane, ..test_site.join_request(node) };
        let error = test_site.join(request).await.expect_err("refused");
        assert!(error.why.contains(expected), "{}", error.why);
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_machine_needs_the_shared_certificates() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let node = test_site.machine("cp-2").await;
    let mut files = test_site.shared_files();
    files.remove("etcd/ca.key");
    let request = JoinRequest { control_plane: Some(files), ..test_site.join_request(node) };
    let error = test_site.join(request).await.expect_err("refused");
    assert!(error.why.contains("/etc/kubernetes/pki/etcd/ca.key"), "{}", error.why);
}
