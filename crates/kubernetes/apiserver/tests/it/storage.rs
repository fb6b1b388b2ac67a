//! Volumes and claims: default class, protection, growth. Ingresses and nodes as admission completes them.

use capstan_apiserver::Config;
use serde_json::{Value, json};

use crate::client::Client;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

async fn start() -> Client {
    let client = Client::with(Config::in_memory().with_pod_admission()).await;
    client.until("/api/v1/namespaces/default/serviceaccounts/default", |(code, _)| *code == 200).await;
    client
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn class(name: &str, is_default: bool, grows: bool) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/p",
        "metadata": {
            "name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": is_default.to_string()},
        },
        "allowVolumeExpansion": grows,
    })
}

#[tokio::test]
async fn a_claim_in_use_stays_until_its_pod_is_gone() {
    let client = start().await;
    let (_, created) = client.create(CLAIMS, &claim("data")).await;
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    assert_eq!(client.create(PODS, &pod).await.0, 201);
    let path = format!("{CLAIMS}/data");
    let (code, pending) = client.delete(&path).await;
    assert_eq!(code, 200);
    assert!(pending["metadata"]["deletionTimestamp"].is_string(), "{pending}");
    client.create(CLAIMS, &claim("free")).await;
    client.delete(&format!("{CLAIMS}/free")).await;
    client.until(&format!("{CLAIMS}/free"), |(code, _)| *code == 404).await;
    assert_eq!(client.get(&path).await.0, 200, "a Pod uses it");
    client.delete(&format!("{PODS}/user?gracePeriodSeconds=0")).await;
    client.until(&path, |(code, _)| *code == 404).await;
}

#[tokio::test]
async fn a_bound_volume_stays() {
    let client = start().await;
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
    });
    let path = "/api/v1/persistentvolumes/v";
    let (_, created) = client.create("/api/v1/persistentvolumes", &volume).await;
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
    let status = format!("{path}/status");
    client.patch(&status, MERGE, &json!({"status": {"phase": "Bound"}})).await;
    client.delete(path).await;
    assert_eq!(client.get(path).await.0, 200);
    client.patch(&status, MERGE, &json!({"status": {"phase": "Released"}})).await;
    client.until(path, |(code, _)| *code == 404).await;
}

#[tokio::test]
async fn a_claim_gets_the_default_class_and_grows_if_its_class_allows_it() {
    let client = start().await;
    client.create(CLASSES, &class("fixed", false, false)).await;
    client.create(CLASSES, &class("standard", true, true)).await;
    let (_, created) = client.create(CLAIMS, &claim("a")).await;
    assert_eq!(created["spec"]["storageClassName"], "standard");
    let mut none = claim("none");
    none["spec"]["storageClassName"] = "".into();
    assert_eq!(client.create(CLAIMS, &none).await.1["spec"]["storageClassName"], "");
    let mut fixed = claim("b");
    fixed["spec"]["storageClassName"] = "fixed".into();
    client.create(CLAIMS, &fixed).await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let (code, refused) = client.patch(&format!("{CLAIMS}/a"), MERGE, &more).await;
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")), "not bound: {refused}");
    for name in ["a", "b"] {
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        client.patch(&format!("{CLAIMS}/{name}/status"), MERGE, &bound).await;
    }
    assert_eq!(client.patch(&format!("{CLAIMS}/a"), MERGE, &more).await.0, 200);
    let (code, refused) = client.patch(&format!("{CLAIMS}/b"), MERGE, &more).await;
    assert_eq!(code, 403);
    assert!(refused["message"].as_str().is_some_and(|m| m.contains("must support resize")), "{refused}");
}

#[tokio::test]
async fn an_ingress_gets_the_default_class_and_a_node_its_taint() {
    let client = start().await;
    let class = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {"name": "c", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/c"},
    });
    client.create("/apis/networking.k8s.io/v1/ingressclasses", &class).await;
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    });
    let (_, created) =
        client.create("/apis/networking.k8s.io/v1/namespaces/default/ingresses", &ingress).await;
    assert_eq!(created["spec"]["ingressClassName"], "c");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let (_, created) = client.create("/api/v1/nodes", &node).await;
    let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    assert_eq!(created["spec"]["taints"], taint);
}
