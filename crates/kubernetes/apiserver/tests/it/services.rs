//! Services: addresses and ports are allocated, unique, and released.

use capstan_apiserver::{Config, ServiceRange};
use serde_json::{Value, json};

use crate::client::Client;

const SERVICES: &str = "/api/v1/namespaces/default/services";

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
