use capstan_sim_openstack::{ConnectionLost, Fault, Service, Target};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_lost_reply_is_a_change_that_happened() {
    let world = World::new();
    let tenant = world.tenant().await;
    let on = Target {
        service: Some(Service::Network),
        method: Some("POST".to_owned()),
        times: Some(1),
        ..Target::default()
    };
    world.simulator.inject(Fault::LostReply { on }).unwrap();
    let body = json!({"network": {"name": "n"}});
    let lost = world.send(Some(&tenant.token), Service::Network, "POST", "/v2.0/networks", Some(body)).await;
    assert_eq!(lost.unwrap_err(), ConnectionLost);
    let found = tenant.get(Service::Network, "/v2.0/networks?name=n").await;
    assert_eq!(found["networks"].as_array().unwrap().len(), 1);
    assert_eq!(world.simulator.faults(), []);
}

#[tokio::test]
async fn an_error_comes_in_the_shape_of_its_service_and_after_so_many_calls() {
    let world = World::new();
    let tenant = world.tenant().await;
    let on = Target { path: Some("/servers".to_owned()), after: 1, times: Some(1), ..Target::default() };
    world.simulator.inject(Fault::Error { on, status: 503, message: "later".to_owned() }).unwrap();
    assert_eq!(tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await.status, 200);
    let refused = tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await;
    assert_eq!((refused.status, &refused.body["serviceUnavailable"]["message"]), (503, &json!("later")));
    assert_eq!(tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await.status, 200);
}

#[tokio::test]
async fn expired_tokens_are_refused_until_the_next_login() {
    let world = World::new();
    let tenant = world.tenant().await;
    tenant.get(Service::Compute, "/v2.1/servers").await;
    world.simulator.inject(Fault::ExpiredTokens).unwrap();
    assert_eq!(tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await.status, 401);
    world.tenant().await.get(Service::Compute, "/v2.1/servers").await;
}

#[test]
fn a_fault_is_read_from_json_and_unknown_fields_are_named() {
    let read = |text: &str| serde_json::from_str::<Fault>(text).map_err(|error| error.to_string());
    assert_eq!(read("{\"fault\":\"noValidHost\"}"), Ok(Fault::NoValidHost));
    let error = read("{\"fault\":\"error\",\"status\":503,\"on\":{\"sevice\":\"compute\"}}").unwrap_err();
    assert!(error.contains("sevice"), "{error}");
}
