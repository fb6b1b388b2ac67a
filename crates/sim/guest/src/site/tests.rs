//! Clusters that machines form, as their clients see them.

use serde_json::Value;

use crate::request::{Discovery, JoinRequest};
use crate::testing::{Bed, condition, get, kind, list, pass};

fn nodes() -> capstan_controller::KindName {
    kind("", "Node", "nodes")
}

fn pods() -> capstan_controller::KindName {
    kind("", "Pod", "pods")
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_has_what_kubeadm_leaves() {
    let mut bed = Bed::new();
    bed.init().await;
    let client = bed.client();
    let node = get(&client, &nodes(), "", "cp-1").await.expect("a Node");
    assert_eq!(node["spec"]["providerID"], "sim://vm-1");
    assert_eq!(node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"], "");
    pass(5).await;
    let node = get(&client, &nodes(), "", "cp-1").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "False");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.36.0");
    let pods = list(&client, &pods(), "kube-system").await;
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
    let mut bed = Bed::new();
    bed.init().await;
    bed.worker("worker-1").await;
    let node = get(&bed.client(), &nodes(), "", "worker-1").await.expect("a Node");
    assert_eq!(node["spec"]["providerID"], "sim://vm-2");
    assert!(node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane").is_none());
}

#[tokio::test(start_paused = true)]
async fn kubeadm_refuses_what_it_cannot_trust() {
    let mut bed = Bed::new();
    bed.init().await;
    let with = |discovery: &dyn Fn(&mut String, &mut Vec<String>)| {
        let (mut token, mut hashes) = (crate::testing::TOKEN.to_owned(), vec![bed.ca_hash()]);
        discovery(&mut token, &mut hashes);
        Discovery::Token {
            endpoint: bed.endpoint.to_string(),
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
        let node = bed.machine("stranger").await;
        let request = JoinRequest { discovery, ..bed.join_request(node) };
        let error = bed.join(request).await.expect_err("refused");
        assert_eq!(error.phase, "preflight");
        assert!(error.why.contains(expected), "{}", error.why);
        assert!(!error.why.contains("fedcba"), "the token is a secret");
    }
    assert!(get(&bed.client(), &nodes(), "", "stranger").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_lets_nobody_in() {
    let mut bed = Bed::new();
    bed.init().await;
    pass(3601).await;
    let secrets = kind("", "Secret", "secrets");
    assert!(get(&bed.client(), &secrets, "kube-system", "bootstrap-token-abcdef").await.is_none());
    let node = bed.machine("late").await;
    let error = bed.join(bed.join_request(node)).await.expect_err("refused");
    assert!(error.why.contains("could not find a JWS signature"), "{}", error.why);
}

#[tokio::test(start_paused = true)]
async fn kubeadm_looks_for_its_cluster_for_five_minutes() {
    let mut bed = Bed::new();
    let node = bed.machine("alone").await;
    let before = bed.env.now();
    let error = bed.join(bed.join_request(node)).await.expect_err("nobody there");
    assert!(error.why.contains("connect: connection refused"), "{}", error.why);
    let waited = bed.env.now().duration_since(before).as_secs();
    assert!((290..=300).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn versions_too_far_apart_do_not_meet() {
    let mut bed = Bed::new();
    bed.init().await;
    for (version, control_plane, expected) in [
        ("v1.38.0", false, "only supports deploying clusters with the control plane version >= 1.37.0"),
        ("v1.37.0", true, "the kubelet version is higher than the control plane version"),
    ] {
        let mut node = bed.machine("newer").await;
        node.kubelet_version = version.to_owned();
        let control_plane = control_plane.then(|| bed.shared_files());
        let request = JoinRequest { control_plane, ..bed.join_request(node) };
        let error = bed.join(request).await.expect_err("refused");
        assert!(error.why.contains(expected), "{}", error.why);
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_machine_needs_the_shared_certificates() {
    let mut bed = Bed::new();
    bed.init().await;
    let node = bed.machine("cp-2").await;
    let mut files = bed.shared_files();
    files.remove("etcd/ca.key");
    let request = JoinRequest { control_plane: Some(files), ..bed.join_request(node) };
    let error = bed.join(request).await.expect_err("refused");
    assert!(error.why.contains("/etc/kubernetes/pki/etcd/ca.key"), "{}", error.why);
}

#[tokio::test(start_paused = true)]
async fn three_members_survive_one_death_and_no_second() {
    let mut bed = Bed::new();
    let cluster = bed.init().await;
    let second = bed.control_plane("cp-2").await;
    let third = bed.control_plane("cp-3").await;
    assert_eq!(cluster.etcd_members().len(), 3);
    bed.site.stop(&third).expect("stopped");
    assert_eq!(list(&bed.client(), &nodes(), "").await.len(), 3);
    bed.site.stop(&second).expect("stopped");
    assert!(!cluster.has_quorum());
    let refused = bed.client().document("/api").await;
    assert!(refused.is_err());
    bed.site.start(&second).expect("started");
    pass(1).await;
    assert_eq!(list(&bed.client(), &nodes(), "").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_silent_kubelet_is_unreachable_after_forty_seconds_and_comes_back() {
    let mut bed = Bed::new();
    bed.init().await;
    let worker = bed.worker("worker-1").await;
    pass(5).await;
    let ready = async |bed: &Bed| {
        let node = get(&bed.client(), &nodes(), "", "worker-1").await.expect("a Node");
        condition(&node, "Ready").to_owned()
    };
    assert_eq!(ready(&bed).await, "False");
    bed.site.crash(&worker).expect("crashed");
    pass(30).await;
    assert_eq!(ready(&bed).await, "False");
    pass(15).await;
    assert_eq!(ready(&bed).await, "Unknown");
    let node = get(&bed.client(), &nodes(), "", "worker-1").await.expect("a Node");
    let taints = node["spec"]["taints"].as_array().expect("taints");
    assert!(taints.iter().any(|taint| taint["key"] == "node.kubernetes.io/unreachable"));
    bed.site.start(&worker).expect("started");
    pass(2).await;
    assert_eq!(ready(&bed).await, "False");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_comes_back_only_with_a_restart() {
    let mut bed = Bed::new();
    bed.init().await;
    let worker = bed.worker("worker-1").await;
    pass(5).await;
    let client = bed.client();
    let key = capstan_object::Key::new("", "worker-1");
    client.delete(&nodes(), &key, &Default::default()).await.expect("deleted");
    pass(600).await;
    assert!(get(&client, &nodes(), "", "worker-1").await.is_none());
    bed.site.reboot(&worker).expect("rebooted");
    pass(2).await;
    assert!(get(&client, &nodes(), "", "worker-1").await.is_some());
}
