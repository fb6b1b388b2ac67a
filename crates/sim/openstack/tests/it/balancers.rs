use capstan_sim_openstack::{Fault, Service};
use serde_json::{Value, json};

use crate::world::{Client, World};

async fn balancer(tenant: &Client<'_>, subnet: &str) -> (String, String) {
    let body = json!({"loadbalancer": {"name": "lb", "vip_subnet_id": subnet}});
    let made = tenant.create(Service::LoadBalancer, "/v2/lbaas/loadbalancers", body).await;
    assert_eq!(made["provisioning_status"], "PENDING_CREATE");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["id"]), text(&made["vip_port_id"]))
}

#[tokio::test]
async fn everything_of_a_pending_load_balancer_is_immutable() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (_, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let (id, _) = balancer(&tenant, &subnet).await;
    let path = format!("/v2/lbaas/loadbalancers/{id}");
    let listener = json!({"listener": {"loadbalancer_id": id, "protocol": "TCP", "protocol_port": 6443}});
    let refused =
        tenant.call(Service::LoadBalancer, "POST", "/v2/lbaas/listeners", Some(listener.clone())).await;
    let text = format!("Load Balancer {id} is immutable and cannot be updated.");
    assert_eq!((refused.status, &refused.body["faultstring"]), (409, &json!(text)));
    assert_eq!(tenant.call(Service::LoadBalancer, "DELETE", &path, None).await.status, 409);
    assert_eq!(tenant.settled(&id).await, "ACTIVE");
    let made = tenant.create(Service::LoadBalancer, "/v2/lbaas/listeners", listener).await;
    assert_eq!(made["provisioning_status"], "PENDING_CREATE");
    let pool = json!({"pool": {"listener_id": made["id"], "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}});
    assert_eq!(tenant.call(Service::LoadBalancer, "POST", "/v2/lbaas/pools", Some(pool)).await.status, 409);
    tenant.settled(&id).await;
    assert_eq!(tenant.call(Service::LoadBalancer, "DELETE", &path, None).await.status, 400);
    let cascade = format!("{path}?cascade=true");
    assert_eq!(tenant.call(Service::LoadBalancer, "DELETE", &cascade, None).await.status, 204);
    tenant.gone(Service::LoadBalancer, &path).await;
    assert_eq!(tenant.get(Service::LoadBalancer, "/v2/lbaas/listeners").await["listeners"], json!([]));
}

#[tokio::test]
async fn its_ports_keep_a_network_until_it_is_gone() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let (id, port) = balancer(&tenant, &subnet).await;
    tenant.settled(&id).await;
    let held = tenant.get(Service::Network, &format!("/v2.0/ports/{port}")).await["port"].clone();
    assert_eq!((&held["device_owner"], &held["device_id"]), (&json!("Octavia"), &json!(format!("lb-{id}"))));
    let path = format!("/v2.0/networks/{network}");
    assert_eq!(tenant.call(Service::Network, "DELETE", &path, None).await.status, 409);
    let balancer = format!("/v2/lbaas/loadbalancers/{id}");
    tenant.call(Service::LoadBalancer, "DELETE", &balancer, None).await;
    tenant.gone(Service::LoadBalancer, &balancer).await;
    assert_eq!(tenant.call(Service::Network, "DELETE", &path, None).await.status, 204);
    assert_eq!(world.simulator.leaks(None), []);
}

#[tokio::test]
async fn a_failed_load_balancer_can_only_be_deleted() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (_, subnet) = tenant.network("n", "10.6.0.0/24").await;
    world.simulator.inject(Fault::FailedLoadBalancers { times: 1 }).unwrap();
    let (id, _) = balancer(&tenant, &subnet).await;
    assert_eq!(tenant.settled(&id).await, "ERROR");
    let path = format!("/v2/lbaas/loadbalancers/{id}");
    let body = json!({"loadbalancer": {"name": "x"}});
    assert_eq!(tenant.call(Service::LoadBalancer, "PUT", &path, Some(body)).await.status, 409);
    assert_eq!(tenant.call(Service::LoadBalancer, "DELETE", &path, None).await.status, 204);
    tenant.gone(Service::LoadBalancer, &path).await;
}

#[tokio::test]
async fn ovn_has_no_amphora_one_algorithm_no_filter_and_no_monitor() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (_, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let tree = |algorithm: &str, more: Value, monitor: Value| {
        let pool = json!({"protocol": "TCP", "lb_algorithm": algorithm, "healthmonitor": monitor});
        let mut listener = json!({"protocol": "TCP", "protocol_port": 6443, "default_pool": pool});
        listener.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        json!({"loadbalancer": {"name": "lb", "vip_subnet_id": subnet, "provider": "ovn", "listeners": [listener]}})
    };
    let monitor = json!({"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 3});
    let post = |path: &'static str, body: Value| tenant.call(Service::LoadBalancer, "POST", path, Some(body));
    let balancers = "/v2/lbaas/loadbalancers";
    for (refused, what) in [
        (tree("ROUND_ROBIN", json!({}), Value::Null), "ROUND_ROBIN algorithm"),
        (
            tree("SOURCE_IP_PORT", json!({"allowed_cidrs": ["192.0.2.0/24"]}), Value::Null),
            "allowed_cidrs option",
        ),
        (tree("SOURCE_IP_PORT", json!({}), monitor.clone()), "health monitors"),
    ] {
        let reply = post(balancers, refused).await;
        let text = format!(
            "Provider 'ovn' does not support a requested option: OVN provider does not support {what}"
        );
        assert_eq!((reply.status, &reply.body["faultstring"]), (501, &json!(text)));
    }
    let made =
        tenant.create(Service::LoadBalancer, balancers, tree("SOURCE_IP_PORT", json!({}), Value::Null)).await;
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(tenant.settled(&id).await, "ACTIVE");
    let ports = tenant.get(Service::Network, "/v2.0/ports").await;
    let of_octavia = |it: &&Value| it["name"].as_str().is_some_and(|name| name.starts_with("octavia-"));
    assert_eq!(ports["ports"].as_array().unwrap().iter().filter(of_octavia).count(), 1, "the address alone");
    let pools = tenant.get(Service::LoadBalancer, "/v2/lbaas/pools").await;
    let mut monitor = monitor;
    monitor["pool_id"] = pools["pools"][0]["id"].clone();
    let refused = post("/v2/lbaas/healthmonitors", json!({"healthmonitor": monitor})).await;
    assert_eq!(refused.status, 501);
}

#[tokio::test]
async fn ranges_of_a_listener_lose_bits_of_hosts() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (_, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let (id, _) = balancer(&tenant, &subnet).await;
    tenant.settled(&id).await;
    let body = json!({"listener": {"loadbalancer_id": id, "protocol": "TCP", "protocol_port": 6443,
        "allowed_cidrs": ["203.0.113.7/24", "192.0.2.7"]}});
    let made = tenant.create(Service::LoadBalancer, "/v2/lbaas/listeners", body).await;
    assert_eq!(made["allowed_cidrs"], json!(["203.0.113.0/24", "192.0.2.7/32"]));
}
