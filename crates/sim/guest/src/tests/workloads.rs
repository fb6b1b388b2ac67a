//! Controllers, scheduler and kubelets.

use capstan_controller::{Client, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use super::{deployment, names, network_plugin, node_kind, pod_kind};
use crate::cluster::GuestCluster;
use crate::testing::{TestSite, condition, get, kind, list, pass};

async fn create(client: &Client, group: &str, of: &str, plural: &str, object: &Value) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    client.create(&kind(group, of, plural), namespace, object).await.expect("created");
}

/// A cluster with a CNI, one control plane machine and two workers.
async fn working(test_site: &mut TestSite) -> (std::sync::Arc<GuestCluster>, Client) {
    let cluster = test_site.init().await;
    test_site.worker("worker-1").await;
    test_site.worker("worker-2").await;
    let client = test_site.client();
    create(&client, "apps", "DaemonSet", "daemonsets", &network_plugin()).await;
    pass(10).await;
    (cluster, client)
}

async fn pods_of(client: &Client, app: &str) -> Vec<Value> {
    let all = list(client, &pod_kind(), "default").await;
    all.into_iter().filter(|pod| pod["metadata"]["labels"]["app"] == app).collect()
}

#[tokio::test(start_paused = true)]
async fn nodes_wait_for_a_network_plugin() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    test_site.worker("worker-1").await;
    pass(60).await;
    let client = test_site.client();
    let node = get(&client, &node_kind(), "", "worker-1").await.expect("a Node");
    let ready =
        node["status"]["conditions"].as_array().expect("conditions").iter().find(|c| c["type"] == "Ready");
    let message = ready.expect("Ready")["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("cni plugin not initialized"), "{message}");
    let dns = list(&client, &pod_kind(), "kube-system").await;
    let dns =
        dns.iter().find(|pod| pod["metadata"]["labels"]["k8s-app"] == "kube-dns").expect("a Pod").clone();
    assert_eq!(condition(&dns, "PodScheduled"), "False");

    create(&client, "apps", "DaemonSet", "daemonsets", &network_plugin()).await;
    pass(10).await;
    for name in ["cp-1", "worker-1"] {
        let node = get(&client, &node_kind(), "", name).await.expect("a Node");
        assert_eq!(condition(&node, "Ready"), "True", "{name}");
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        assert!(taints.iter().all(|taint| taint["key"] != "node.kubernetes.io/not-ready"), "{taints:?}");
    }
    let set = get(&client, &kind("apps", "DaemonSet", "daemonsets"), "kube-system", "kube-proxy").await;
    assert_eq!(set.expect("a DaemonSet")["status"]["numberReady"], 2);
    let dns = get(&client, &kind("apps", "Deployment", "deployments"), "kube-system", "coredns").await;
    assert_eq!(dns.expect("a Deployment")["status"]["availableReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_ready_node_cannot_be_taken() {
    let mut test_site = TestSite::new();
    working(&mut test_site).await;
    let node = test_site.machine("worker-1").await;
    let error = test_site.join(test_site.join_request(node)).await.expect_err("refused");
    assert_eq!(error.phase, "kubelet-start");
    assert!(error.why.contains("already exists in the cluster"), "{}", error.why);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_created_changed_and_deleted() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    create(&client, "apps", "Deployment", "deployments", &deployment("web", 4, "example.org/web:1")).await;
    pass(10).await;
    let pods = pods_of(&client, "web").await;
    assert_eq!(pods.len(), 4);
    for node in ["worker-1", "worker-2"] {
        let here =
            pods.iter().filter(|pod| pod["spec"]["nodeName"] == node && condition(pod, "Ready") == "True");
        assert_eq!(here.count(), 2, "{node}");
    }
    let deployments = kind("apps", "Deployment", "deployments");
    let key = Key::new("default", "web");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/web:2"}]}}}});
    client.patch(&deployments, &key, None, &Patch::Strategic(image)).await.expect("patched");
    pass(60).await;
    let pods = pods_of(&client, "web").await;
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "example.org/web:2"));
    let status = get(&client, &deployments, "default", "web").await.expect("a Deployment")["status"].clone();
    assert_eq!((&status["updatedReplicas"], &status["availableReplicas"]), (&json!(4), &json!(4)));
    client.delete(&deployments, &key, &Default::default()).await.expect("deleted");
    pass(60).await;
    assert!(pods_of(&client, "web").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_gets_no_new_pods() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    client.patch(&node_kind(), &Key::new("", "worker-1"), None, &cordon).await.expect("cordoned");
    create(&client, "apps", "Deployment", "deployments", &deployment("web", 3, "example.org/web:1")).await;
    pass(10).await;
    let pods = pods_of(&client, "web").await;
    assert!(pods.len() == 3 && pods.iter().all(|pod| pod["spec"]["nodeName"] == "worker-2"));
    let uncordon = Patch::Merge(json!({"spec": {"unschedulable": null}}));
    client.patch(&node_kind(), &Key::new("", "worker-1"), None, &uncordon).await.expect("uncordoned");
    pass(1).await;
    let node = get(&client, &node_kind(), "", "worker-1").await.expect("a Node");
    assert!(node["spec"]["taints"].as_array().is_none_or(Vec::is_empty), "{}", node["spec"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_room_waits_for_a_machine() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    // Two CPUs on each machine, and the control plane's is tainted.
    let mut web = deployment("web", 3, "example.org/web:1");
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1500m"}});
    create(&client, "apps", "Deployment", "deployments", &web).await;
    pass(30).await;
    let pods = pods_of(&client, "web").await;
    let (bound, waiting): (Vec<&Value>, Vec<&Value>) =
        pods.iter().partition(|pod| pod["spec"]["nodeName"].is_string());
    assert_eq!((bound.len(), waiting.len()), (2, 1));
    let conditions = waiting[0]["status"]["conditions"].as_array().expect("conditions");
    let scheduled = conditions.iter().find(|one| one["type"] == "PodScheduled").expect("PodScheduled");
    assert_eq!((&scheduled["status"], &scheduled["reason"]), (&json!("False"), &json!("Unschedulable")));
    assert_eq!(
        scheduled["message"],
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: \
         0/3 nodes are available: 1 Preemption is not helpful for scheduling, \
         2 No preemption victims found for incoming pod."
    );
    test_site.worker("worker-3").await;
    pass(30).await;
    let pods = pods_of(&client, "web").await;
    assert_eq!(pods.iter().filter(|pod| condition(pod, "Ready") == "True").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn evictions_wait_for_their_budget() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    create(&client, "apps", "Deployment", "deployments", &deployment("web", 2, "example.org/web:1")).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    create(&client, "policy", "PodDisruptionBudget", "poddisruptionbudgets", &budget).await;
    pass(10).await;
    let pods = pods_of(&client, "web").await;
    let evict = async |pod: &Value| {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
        });
        client.post_subresource(&pod_kind(), &Key::new("default", name), "eviction", &eviction).await
    };
    evict(&pods[0]).await.expect("evicted");
    let refused = evict(&pods[1]).await.expect_err("refused");
    assert!(refused.to_string().contains("disruption budget"), "{refused}");
    pass(10).await;
    evict(&pods[1]).await.expect("evicted, now that another has come");
    pass(10).await;
    let pods = pods_of(&client, "web").await;
    assert_eq!(pods.iter().filter(|pod| condition(pod, "Ready") == "True").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_dead_node_are_replaced_elsewhere() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    create(&client, "apps", "Deployment", "deployments", &deployment("web", 2, "example.org/web:1")).await;
    pass(10).await;
    test_site.site.destroy("vm-2").expect("destroyed");
    pass(60).await;
    assert!(get(&client, &node_kind(), "", "worker-1").await.is_some(), "its Node stays");
    pass(300).await;
    let pods = pods_of(&client, "web").await;
    let elsewhere = pods.iter().filter(|pod| pod["spec"]["nodeName"] == "worker-2");
    assert_eq!(elsewhere.filter(|pod| condition(pod, "Ready") == "True").count(), 2);
    let stuck: Vec<&Value> = pods.iter().filter(|pod| pod["spec"]["nodeName"] == "worker-1").collect();
    assert!(stuck.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_string()) && stuck.len() == 1);
    client.delete(&node_kind(), &Key::new("", "worker-1"), &Default::default()).await.expect("deleted");
    pass(1).await;
    assert_eq!(pods_of(&client, "web").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stateful_sets_start_in_order_and_jobs_complete() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    let template = |app: &str| json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "x"}]}});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": template("db"),
        },
    });
    create(&client, "apps", "StatefulSet", "statefulsets", &set).await;
    pass(1).await;
    assert_eq!(names(&pods_of(&client, "db").await), ["db-0"]);
    pass(30).await;
    assert_eq!(names(&pods_of(&client, "db").await), ["db-0", "db-1", "db-2"]);
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": "default"},
        "spec": {"template": template("once"), "completions": 2},
    });
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    create(&client, "batch", "Job", "jobs", &job).await;
    pass(60).await;
    let job = get(&client, &kind("batch", "Job", "jobs"), "default", "once").await.expect("a Job");
    assert_eq!(job["status"]["succeeded"], 2);
    assert_eq!(condition(&job, "Complete"), "True");
}

#[tokio::test(start_paused = true)]
async fn volumes_follow_pods() {
    let mut test_site = TestSite::new();
    let (_cluster, client) = working(&mut test_site).await;
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.org", "volumeHandle": "1"},
        },
    });
    create(&client, "", "PersistentVolume", "persistentvolumes", &volume).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    create(&client, "", "PersistentVolumeClaim", "persistentvolumeclaims", &claim).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    create(&client, "", "Pod", "pods", &pod).await;
    pass(5).await;
    let attachments = kind("storage.k8s.io", "VolumeAttachment", "volumeattachments");
    let all = list(&client, &attachments, "").await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["status"]["attached"], true);
    client.delete(&pod_kind(), &Key::new("default", "db"), &Default::default()).await.expect("deleted");
    pass(40).await;
    assert!(list(&client, &attachments, "").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_idle_cluster_writes_nothing() {
    let mut test_site = TestSite::new();
    let (cluster, client) = working(&mut test_site).await;
    create(&client, "apps", "Deployment", "deployments", &deployment("web", 2, "example.org/web:1")).await;
    // Until the bootstrap token has expired too.
    pass(4000).await;
    let before = cluster.server().store().revision();
    pass(24 * 3600).await;
    assert_eq!(cluster.server().store().revision(), before);
}
