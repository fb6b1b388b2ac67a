//! Pods are completed by admission.

use capstan_apiserver::Config;
use serde_json::{Value, json};

use crate::client::Client;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "c", "image": "i"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

async fn start() -> Client {
    Client::with(Config::in_memory().with_pod_admission()).await
}

#[tokio::test]
async fn a_pod_gets_an_account_a_token_a_priority_and_tolerations() {
    let client = start().await;
    let (code, created) = client.create(PODS, &pod("a", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let spec = &created["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(0), &json!("PreemptLowerPriority")));
    let keys: Vec<_> =
        spec["tolerations"].as_array().expect("tolerations").iter().map(|t| &t["key"]).collect();
    assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    let volume = spec["volumes"][0]["name"].as_str().expect("a volume");
    assert!(volume.starts_with("kube-api-access-"));
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);

    let tolerant = json!({"automountServiceAccountToken": false, "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical"});
    let (code, created) = client.create(PODS, &pod("b", tolerant)).await;
    assert_eq!((code, created["spec"]["volumes"].is_null()), (201, true), "{created}");
    assert_eq!(created["spec"]["tolerations"].as_array().map(Vec::len), Some(1));
    assert_eq!(created["spec"]["priority"], 2_000_001_000);
}

#[tokio::test]
async fn unknown_accounts_and_classes_and_given_priorities_are_refused() {
    let client = start().await;
    for (spec, why) in [
        (
            json!({"serviceAccountName": "x"}),
            "error looking up service account default/x: serviceaccount \"x\" not found",
        ),
        (json!({"priorityClassName": "x"}), "no PriorityClass with name x was found"),
        (json!({"runtimeClassName": "x"}), "pod rejected: RuntimeClass \"x\" not found"),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"priority": 5}),
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller \
             computed 0 from the given PriorityClass name",
        ),
    ] {
        let (code, refused) = client.create(PODS, &pod("a", spec)).await;
        assert_eq!(code, 403, "{refused}");
        assert_eq!(refused["message"], format!("pods \"a\" is forbidden: {why}"));
    }
}

#[tokio::test]
async fn there_is_one_default_priority_class() {
    let client = start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": 7, "globalDefault": true})
    };
    assert_eq!(client.create(classes, &class("a")).await.0, 201);
    let (code, refused) = client.create(classes, &class("b")).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "priorityclasses.scheduling.k8s.io \"b\" is forbidden: PriorityClass a is already marked as default. Only \
         one default can exist"
    );
    let (_, created) = client.create(PODS, &pod("p", json!({}))).await;
    assert_eq!(
        (&created["spec"]["priorityClassName"], &created["spec"]["priority"]),
        (&json!("a"), &json!(7))
    );
}

#[tokio::test]
async fn limit_ranges_set_defaults_and_bounds() {
    let client = start().await;
    let range = |name: &str, limit: Value| json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": [limit]}});
    let ranges = "/api/v1/namespaces/default/limitranges";
    let containers = json!({"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}});
    assert_eq!(client.create(ranges, &range("containers", containers)).await.0, 201);
    let (code, created) = client.create(PODS, &pod("a", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let resources = &created["spec"]["containers"][0]["resources"];
    assert_eq!(resources, &json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}));
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let refused = |limits: Value| {
        let mut pod = pod("b", json!({}));
        pod["spec"]["containers"][0]["resources"] = json!({"limits": limits});
        let client = client.clone();
        async move { client.create(PODS, &pod).await }
    };
    let (code, answer) = refused(json!({"cpu": "2"})).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
    let pods = json!({"type": "Pod", "max": {"memory": "1Gi"}});
    assert_eq!(client.create(ranges, &range("pods", pods)).await.0, 201);
    let (_, answer) = refused(json!({})).await;
    assert_eq!(
        answer["message"],
        "pods \"b\" is forbidden: maximum memory usage per Pod is 1Gi.  No limit is specified"
    );
}
