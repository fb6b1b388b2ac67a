//! Kubelets and the node controller.

use std::time::Duration;

use capstan_controller::Patch;
use capstan_object::Key;
use serde_json::{Value, json};

use super::{network_plugin, node_kind};
use crate::request::{ExternalCloud, NodeRequest};
use crate::site::{SiteOptions, Timings};
use crate::testing::{TestSite, condition, get, kind, list, pass};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

#[tokio::test(start_paused = true)]
async fn three_members_survive_one_failure_but_not_two() {
    let mut test_site = TestSite::new();
    let cluster = test_site.init().await;
    let second = test_site.control_plane("cp-2").await;
    let third = test_site.control_plane("cp-3").await;
    assert_eq!(cluster.etcd_members().len(), 3);
    test_site.site.stop(&third).expect("stopped");
    assert_eq!(list(&test_site.client(), &node_kind(), "").await.len(), 3);
    test_site.site.stop(&second).expect("stopped");
    assert!(!cluster.has_quorum());
    assert!(test_site.client().document("/api").await.is_err());
    test_site.site.start(&second).expect("started");
    pass(1).await;
    assert_eq!(list(&test_site.client(), &node_kind(), "").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_the_cluster_stops() {
    let mut test_site = TestSite::new();
    let cluster = test_site.init().await;
    let second = test_site.control_plane("cp-2").await;
    let worker = test_site.worker("worker-1").await;
    pass(5).await;
    test_site.site.stop(&second).expect("stopped");
    test_site.site.stop(&worker).expect("stopped");
    let before = cluster.server().store().revision();
    pass(600).await;
    assert_eq!(cluster.server().store().revision(), before);
    test_site.site.start(&second).expect("started");
    pass(1).await;
    let node = get(&test_site.client(), &node_kind(), "", "worker-1").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "Unknown");
}

#[tokio::test(start_paused = true)]
async fn a_silent_kubelet_is_unreachable_after_forty_seconds_and_comes_back() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let worker = test_site.worker("worker-1").await;
    pass(5).await;
    let ready = async |test_site: &TestSite| {
        let node = get(&test_site.client(), &node_kind(), "", "worker-1").await.expect("a Node");
        condition(&node, "Ready").to_owned()
    };
    assert_eq!(ready(&test_site).await, "False");
    test_site.site.crash(&worker).expect("crashed");
    pass(30).await;
    assert_eq!(ready(&test_site).await, "False");
    pass(15).await;
    assert_eq!(ready(&test_site).await, "Unknown");
    let node = get(&test_site.client(), &node_kind(), "", "worker-1").await.expect("a Node");
    let taints = node["spec"]["taints"].as_array().expect("taints");
    assert!(taints.iter().any(|taint| taint["key"] == "node.kubernetes.io/unreachable"));
    test_site.site.start(&worker).expect("started");
    pass(2).await;
    assert_eq!(ready(&test_site).await, "False");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_is_registered_again_only_after_a_restart() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let worker = test_site.worker("worker-1").await;
    pass(5).await;
    let client = test_site.client();
    client.delete(&node_kind(), &Key::new("", "worker-1"), &Default::default()).await.expect("deleted");
    pass(600).await;
    assert!(get(&client, &node_kind(), "", "worker-1").await.is_none());
    test_site.site.reboot(&worker).expect("rebooted");
    pass(2).await;
    assert!(get(&client, &node_kind(), "", "worker-1").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn kubelets_renew_their_leases_if_they_have_a_heartbeat() {
    let options = SiteOptions {
        timings: Timings::none(),
        heartbeat: Some(Duration::from_secs(10)),
        ..SiteOptions::default()
    };
    let mut test_site = TestSite::with(options);
    test_site.init().await;
    let worker = test_site.worker("worker-1").await;
    let client = test_site.client();
    let renewed = async |name: &str| {
        let lease =
            get(&client, &kind("coordination.k8s.io", "Lease", "leases"), "kube-node-lease", name).await;
        lease.expect("a Lease")["spec"]["renewTime"].as_str().expect("a time").to_owned()
    };
    pass(15).await;
    let (first, other) = (renewed("cp-1").await, renewed("worker-1").await);
    test_site.site.stop(&worker).expect("stopped");
    pass(30).await;
    assert_ne!(renewed("cp-1").await, first);
    assert_eq!(renewed("worker-1").await, other);
}

#[tokio::test(start_paused = true)]
async fn each_node_gets_a_part_of_the_pod_network() {
    let mut test_site = TestSite::new();
    let node = test_site.machine("cp-1").await;
    test_site.balance(&node);
    let mut request = test_site.init_request(node);
    request.cluster_configuration["networking"]["podSubnet"] = "192.168.0.0/16".into();
    let control = test_site.control("vm-1");
    crate::request::Control::init(&control, request).await.expect("a cluster");
    test_site.worker("worker-1").await;
    pass(1).await;
    let nodes = list(&test_site.client(), &node_kind(), "").await;
    let networks: Vec<&str> = nodes.iter().filter_map(|node| node["spec"]["podCIDR"].as_str()).collect();
    assert_eq!(networks, ["192.168.0.0/24", "192.168.1.0/24"]);
}

/// Joins `worker-1`, whose kubelet has `--cloud-provider=external` and no provider id. Returns its Node once it is Ready.
async fn external_worker(test_site: &mut TestSite, external: ExternalCloud) -> Value {
    test_site.init().await;
    let client = test_site.client();
    let plugin = network_plugin();
    client.create(&kind("apps", "DaemonSet", "daemonsets"), "kube-system", &plugin).await.expect("created");
    let machine = test_site.machine("worker-1").await;
    let node = NodeRequest { provider_id: None, external: Some(external), ..machine };
    test_site.join(test_site.join_request(node)).await.expect("joined");
    pass(10).await;
    let node = get(&client, &node_kind(), "", "worker-1").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "True");
    node
}

fn is_tainted(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == key)
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_leaves_its_node_to_an_external_cloud_provider() {
    let mut test_site = TestSite::new();
    let node = external_worker(&mut test_site, ExternalCloud::default()).await;
    let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
    assert!(node["spec"]["taints"].as_array().is_some_and(|taints| taints.contains(&taint)), "{node}");
    assert_eq!(node["spec"]["providerID"], Value::Null);
    assert_eq!(node["status"]["addresses"], json!([{"type": "Hostname", "address": "worker-1"}]));

    let client = test_site.client();
    let key = Key::new("", "worker-1");
    let spec = Patch::Merge(json!({"spec": {"taints": null, "providerID": "cloud:///vm-2"}}));
    client.patch(&node_kind(), &key, None, &spec).await.expect("initialized");
    let found = json!([
        {"type": "InternalIP", "address": "10.9.9.9"}, {"type": "ExternalIP", "address": "203.0.113.9"},
    ]);
    let status = Patch::Merge(json!({"status": {"addresses": found}}));
    client.patch(&node_kind(), &key, Some("status"), &status).await.expect("initialized");
    pass(60).await;
    let node = get(&client, &node_kind(), "", "worker-1").await.expect("a Node");
    assert_eq!(node["status"]["addresses"], found);
    assert!(!is_tainted(&node, UNINITIALIZED), "{node}");
}

#[tokio::test(start_paused = true)]
async fn a_given_node_address_is_reported_and_passed_to_the_external_cloud_provider() {
    let mut test_site = TestSite::new();
    let given = ExternalCloud { node_ip: "10.9.9.9".parse().ok() };
    let node = external_worker(&mut test_site, given).await;
    assert_eq!(node["metadata"]["annotations"]["alpha.kubernetes.io/provided-node-ip"], "10.9.9.9");
    let internal = json!({"type": "InternalIP", "address": "10.9.9.9"});
    assert_eq!(node["status"]["addresses"], json!([internal, {"type": "Hostname", "address": "worker-1"}]));
}

#[tokio::test(start_paused = true)]
async fn a_preview_assumes_that_nodes_are_initialized() {
    let options = SiteOptions { timings: Timings::none(), assume_addons: true, ..SiteOptions::default() };
    let mut test_site = TestSite::with(options);
    let node = external_worker(&mut test_site, ExternalCloud::default()).await;
    assert_eq!(node["spec"]["providerID"], "sim://vm-2");
    assert!(!is_tainted(&node, UNINITIALIZED), "{node}");
}
