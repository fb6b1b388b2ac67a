//! Services: addresses and ports are allocated, unique, and released.

use capstan_apiserver::{Config, ServiceRange};
use serde_json::{Value, json};

use crate::client::Client;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const MERGE: &str = "application/merge-patch+json";

async fn start() -> Client {
    Client::with(Config::in_memory().with_services(ServiceRange::default())).await
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn web() -> Value {
    json!({"ports": [{"port": 80}]})
}

#[tokio::test]
async fn a_service_gets_an_address_of_the_range_that_no_other_has() {
    let client = start().await;
    let (_, kubernetes) = client.get(&format!("{SERVICES}/kubernetes")).await;
    assert_eq!(kubernetes["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    let mut seen = std::collections::BTreeSet::from(["10.0.0.1".to_owned()]);
    for i in 0..253 {
        let (code, created) = client.create(SERVICES, &service(&format!("s{i}"), web())).await;
        assert_eq!(code, 201, "{created}");
        let address = created["spec"]["clusterIP"].as_str().expect("an address").to_owned();
        assert_eq!(created["spec"]["clusterIPs"], json!([address]));
        assert_eq!(created["spec"]["ipFamilies"], json!(["IPv4"]));
        assert_eq!(created["spec"]["internalTrafficPolicy"], "Cluster");
        assert!(address.starts_with("10.0.0.") && seen.insert(address.clone()), "{address}");
    }
    let (code, refused) = client.create(SERVICES, &service("full", web())).await;
    let message =
        "Internal error occurred: failed to allocate a serviceIP for Service \"full\": range is full";
    assert_eq!((code, refused["message"].as_str()), (500, Some(message)));
    client.delete(&format!("{SERVICES}/s7")).await;
    assert_eq!(client.create(SERVICES, &service("full", web())).await.0, 201, "the address is free again");
}

#[tokio::test]
async fn a_taken_address_or_port_is_refused_and_a_failed_request_keeps_nothing() {
    let client = start().await;
    let with = |address: &str| json!({"clusterIP": address, "ports": [{"port": 80}]});
    let (code, refused) = client.create(SERVICES, &service("a", with("10.0.0.1"))).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: \
         provided IP is already allocated"
    );
    let (_, refused) = client.create(SERVICES, &service("a", with("10.1.0.1"))).await;
    assert_eq!(
        refused["message"],
        "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to allocate IP 10.1.0.1: \
         the provided network does not match the current range"
    );
    // Allocated, then rejected by validation.
    let bad = json!({"clusterIP": "10.0.0.9", "ports": [{"port": 0}]});
    assert_eq!(client.create(SERVICES, &service("a", bad)).await.0, 422);
    assert_eq!(client.create(SERVICES, &service("a", with("10.0.0.9"))).await.0, 201);

    let exposed = |port: u32| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    assert_eq!(client.create(SERVICES, &service("b", exposed(30080))).await.0, 201);
    let (code, refused) = client.create(SERVICES, &service("c", exposed(30080))).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Service \"c\" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    );
    let (_, refused) = client.create(SERVICES, &service("c", exposed(80))).await;
    assert_eq!(
        refused["message"],
        "Service \"c\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid \
         range. The range of valid ports is 30000-32767"
    );
}

#[tokio::test]
async fn a_change_of_type_allocates_and_releases() {
    let client = start().await;
    let (_, created) = client.create(SERVICES, &service("a", web())).await;
    let address = created["spec"]["clusterIP"].clone();
    let path = format!("{SERVICES}/a");
    let merge = "application/merge-patch+json";
    let (code, exposed) = client.patch(&path, merge, &json!({"spec": {"type": "NodePort"}})).await;
    assert_eq!(code, 200, "{exposed}");
    let port = exposed["spec"]["ports"][0]["nodePort"].as_u64().expect("a port");
    assert!((30000..=32767).contains(&port) && exposed["spec"]["clusterIP"] == address);
    // The manifest without what was allocated keeps it.
    let again = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let (_, replaced) = client.call("PUT", &path, &service("a", again)).await;
    assert_eq!(replaced["spec"]["ports"][0]["nodePort"], port);
    let external = json!({"spec": {"type": "ExternalName", "externalName": "x.example.com", "ports": null}});
    let (code, external) = client.patch(&path, merge, &external).await;
    assert_eq!((code, &external["spec"]["clusterIP"]), (200, &Value::Null), "{external}");
    let taken = json!({"clusterIP": address, "type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    assert_eq!(client.create(SERVICES, &service("b", taken)).await.0, 201, "both were released");
}

#[tokio::test]
async fn endpoints_are_deleted_with_their_service() {
    let client = start().await;
    client.create(SERVICES, &service("a", web())).await;
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}});
    client.create("/api/v1/namespaces/default/endpoints", &endpoints).await;
    assert_eq!(client.delete(&format!("{SERVICES}/a")).await.0, 200);
    assert_eq!(client.get("/api/v1/namespaces/default/endpoints/a").await.0, 404);
}

#[tokio::test]
async fn every_cluster_ip_is_an_address_object_of_its_service() {
    let client = start().await;
    let (_, address) = client.get(&format!("{ADDRESSES}/10.0.0.1")).await;
    assert_eq!(
        address["spec"],
        json!({"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}})
    );
    assert_eq!(
        address["metadata"]["labels"],
        json!({
            "ipaddress.kubernetes.io/ip-family": "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        })
    );
    let fixed = json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]});
    client.create(SERVICES, &service("a", fixed.clone())).await;
    let path = format!("{ADDRESSES}/10.0.0.9");
    assert_eq!(client.get(&path).await.1["spec"]["parentRef"]["name"], "a");
    let external = json!({"spec": {"type": "ExternalName", "externalName": "x.example.com", "ports": null}});
    client.patch(&format!("{SERVICES}/a"), MERGE, &external).await;
    assert_eq!(client.get(&path).await.0, 404, "given up with the type");
    client.create(SERVICES, &service("b", fixed.clone())).await;
    // A second Service of the name is refused, and leaves no address behind.
    let other = json!({"clusterIP": "10.0.0.10", "ports": [{"port": 80}]});
    assert_eq!(client.create(SERVICES, &service("b", other)).await.0, 409);
    assert_eq!(client.get(&format!("{ADDRESSES}/10.0.0.10")).await.0, 404);
    client.delete(&format!("{SERVICES}/b")).await;
    assert_eq!(client.get(&path).await.0, 404, "deleted with its Service");
}

#[tokio::test]
async fn addresses_belong_to_whoever_creates_the_object() {
    let client = start().await;
    let object = |name: &str, labels: Value, parent: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {"name": name, "labels": labels}, "spec": {"parentRef": parent},
        })
    };
    let gateway = json!({"group": "gateway.networking.k8s.io", "resource": "gateways", "name": "g"});
    assert_eq!(client.create(ADDRESSES, &object("10.0.0.50", json!({}), gateway.clone())).await.0, 201);
    let taken = json!({"clusterIP": "10.0.0.50", "ports": [{"port": 80}]});
    let (code, refused) = client.create(SERVICES, &service("a", taken)).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.50\"]: failed to allocate IP \
         10.0.0.50: provided IP is already allocated"
    );
    let (code, refused) = client.create(ADDRESSES, &object("10.0.0.050", json!({}), gateway)).await;
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")), "{refused}");

    // One that is deleted under its Service comes back.
    client.delete(&format!("{ADDRESSES}/10.0.0.1")).await;
    client.until(&format!("{ADDRESSES}/10.0.0.1"), |(code, _)| *code == 200).await;
    // One whose Service does not exist goes, as after a crash between the two writes.
    let labels = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let parent = json!({"resource": "services", "namespace": "default", "name": "gone"});
    client.create(ADDRESSES, &object("10.0.0.60", labels, parent)).await;
    client.until(&format!("{ADDRESSES}/10.0.0.60"), |(code, _)| *code == 404).await;
}

#[tokio::test]
async fn services_get_addresses_of_every_ready_range() {
    let range: ServiceRange = "10.7.0.0/29".parse().expect("a range");
    let client = Client::with(Config::in_memory().with_services(range)).await;
    let (_, kubernetes) = client.get(&format!("{RANGES}/kubernetes")).await;
    assert_eq!(kubernetes["spec"], json!({"cidrs": ["10.7.0.0/29"]}));
    let ready = &kubernetes["status"]["conditions"][0];
    assert_eq!((ready["type"].as_str(), ready["status"].as_str()), (Some("Ready"), Some("True")));
    assert_eq!(ready["message"], "Kubernetes default Service CIDR is ready");
    for i in 0..5 {
        assert_eq!(client.create(SERVICES, &service(&format!("s{i}"), web())).await.0, 201);
    }
    assert_eq!(client.create(SERVICES, &service("more", web())).await.0, 500, "the range is full");
    let more = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more"},
        "spec": {"cidrs": ["10.8.0.0/24"]},
    });
    assert_eq!(client.create(RANGES, &more).await.0, 201);
    assert_eq!(client.create(SERVICES, &service("more", web())).await.0, 500, "nobody says that it is ready");
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"status": {"conditions": [condition]}});
    assert_eq!(client.patch(&format!("{RANGES}/more/status"), MERGE, &status).await.0, 200);
    let (code, created) = client.create(SERVICES, &service("more", web())).await;
    assert_eq!(code, 201, "{created}");
    assert!(created["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.8.0.")), "{created}");

    let (code, refused) =
        client.patch(&format!("{RANGES}/more"), MERGE, &json!({"spec": {"cidrs": ["10.9.0.0/24"]}})).await;
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")), "ranges do not change");
    client.delete(&format!("{RANGES}/kubernetes")).await;
    client
        .until(&format!("{RANGES}/kubernetes"), |(_, found)| found["status"]["conditions"].is_array())
        .await;
}

/// A data directory with an IPAddress and without the `kubernetes` Service, as after a crash between the two writes.
async fn without_kubernetes(dir: &std::path::Path, labels: Value) -> Client {
    let before = Client::with(Config::on_disk(dir)).await;
    let address = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": "10.0.0.1", "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
    });
    assert_eq!(before.create(ADDRESSES, &address).await.0, 201);
    assert_eq!(before.delete(&format!("{SERVICES}/kubernetes")).await.0, 200);
    before.server().store().close().await;
    drop(before);
    Client::with(Config::on_disk(dir).with_services(ServiceRange::default())).await
}

#[tokio::test]
async fn a_server_starts_with_what_a_crash_has_left_of_its_service() {
    let dir = tempfile::tempdir().expect("a directory");
    let managed = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let client = without_kubernetes(dir.path(), managed).await;
    assert_eq!(client.get(&format!("{SERVICES}/kubernetes")).await.1["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(client.get(&format!("{ADDRESSES}/10.0.0.1")).await.0, 200);
}

#[tokio::test]
async fn a_server_starts_although_somebody_has_the_address_of_its_service() {
    let dir = tempfile::tempdir().expect("a directory");
    let client = without_kubernetes(dir.path(), json!({})).await;
    assert_eq!(client.get(&format!("{SERVICES}/kubernetes")).await.0, 404);
    client.delete(&format!("{ADDRESSES}/10.0.0.1")).await;
    client.until(&format!("{SERVICES}/kubernetes"), |(code, _)| *code == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_with_several_threads_start() {
    for _ in 0..10 {
        let client = start().await;
        assert_eq!(client.get(&format!("{ADDRESSES}/10.0.0.1")).await.0, 200);
    }
}
