use capstan_sim_openstack::Service;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn what_is_in_use_cannot_be_deleted() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let router = tenant.router(&subnet).await;
    let kind = |answer: crate::world::Answer| {
        (answer.status, answer.body["NeutronError"]["type"].as_str().unwrap_or_default().to_owned())
    };
    let delete = async |path: &str| kind(tenant.call(Service::Network, "DELETE", path, None).await);
    assert_eq!(delete(&format!("/v2.0/routers/{router}")).await, (409, "RouterInUse".to_owned()));
    assert_eq!(delete(&format!("/v2.0/subnets/{subnet}")).await, (409, "SubnetInUse".to_owned()));
    assert_eq!(delete(&format!("/v2.0/networks/{network}")).await, (409, "NetworkInUse".to_owned()));
    let path = format!("/v2.0/routers/{router}/remove_router_interface");
    let removed = tenant.call(Service::Network, "PUT", &path, Some(json!({"subnet_id": subnet}))).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    for path in [format!("/v2.0/routers/{router}"), format!("/v2.0/networks/{network}")] {
        assert_eq!(delete(&path).await.0, 204, "{path}");
    }
    assert_eq!(world.simulator.leaks(Some("capstan")), []);
}

#[tokio::test]
async fn a_subnet_without_free_addresses_refuses_another_port() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/29").await;
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let port =
            tenant.create(Service::Network, "/v2.0/ports", json!({"port": {"network_id": network}})).await;
        assert!(addresses.insert(port["fixed_ips"][0]["ip_address"].as_str().unwrap().to_owned()));
    }
    let full = tenant
        .call(Service::Network, "POST", "/v2.0/ports", Some(json!({"port": {"network_id": network}})))
        .await;
    assert_eq!(
        (full.status, &full.body["NeutronError"]["type"]),
        (409, &json!("IpAddressGenerationFailure"))
    );
}

#[tokio::test]
async fn a_floating_ip_needs_a_router_and_is_freed_with_its_port() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, subnet) = tenant.network("n", "10.6.0.0/24").await;
    let external = tenant.external().await;
    let port = tenant.create(Service::Network, "/v2.0/ports", json!({"port": {"network_id": network}})).await;
    let ask = json!({"floatingip": {"floating_network_id": external, "port_id": port["id"]}});
    let refused = tenant.call(Service::Network, "POST", "/v2.0/floatingips", Some(ask.clone())).await;
    assert_eq!(refused.body["NeutronError"]["type"], "ExternalGatewayForFloatingIPNotFound");
    tenant.router(&subnet).await;
    let floating = tenant.create(Service::Network, "/v2.0/floatingips", ask).await;
    let path = format!("/v2.0/floatingips/{}", floating["id"].as_str().unwrap());
    world.pass(std::time::Duration::from_secs(1));
    assert_eq!(tenant.get(Service::Network, &path).await["floatingip"]["status"], "ACTIVE");
    // An update without attributes takes it off its port, as in Neutron; one of other attributes does not.
    let update =
        async |body| tenant.call(Service::Network, "PUT", &path, Some(json!({"floatingip": body}))).await;
    assert_eq!(update(json!({"description": "d"})).await.body["floatingip"]["port_id"], port["id"]);
    assert_eq!(update(json!({})).await.body["floatingip"]["port_id"], json!(null));
    world.pass(std::time::Duration::from_secs(1));
    assert_eq!(tenant.get(Service::Network, &path).await["floatingip"]["status"], "DOWN");
    assert_eq!(update(json!({"port_id": port["id"]})).await.status, 200);
    let port = format!("/v2.0/ports/{}", port["id"].as_str().unwrap());
    assert_eq!(tenant.call(Service::Network, "DELETE", &port, None).await.status, 204);
    world.pass(std::time::Duration::from_secs(1));
    let left = tenant.get(Service::Network, &path).await["floatingip"].clone();
    assert_eq!((&left["port_id"], &left["status"]), (&json!(null), &json!("DOWN")));
}

#[tokio::test]
async fn a_bulk_create_makes_all_or_nothing() {
    let world = World::new();
    let tenant = world.tenant().await;
    let body = json!({"networks": [{"name": "one"}, {"name": "two", "mtu": "no"}]});
    assert_eq!(tenant.call(Service::Network, "POST", "/v2.0/networks", Some(body)).await.status, 400);
    assert_eq!(tenant.get(Service::Network, "/v2.0/networks?name=one").await["networks"], json!([]));
}

#[tokio::test]
async fn rules_are_kept_in_neutrons_spelling() {
    let world = World::new();
    let tenant = world.tenant().await;
    let group = tenant
        .create(Service::Network, "/v2.0/security-groups", json!({"security_group": {"name": "g"}}))
        .await;
    let kept = async |more: serde_json::Value| {
        let mut rule = json!({"security_group_id": group["id"], "direction": "ingress"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"security_group_rule": rule});
        tenant.create(Service::Network, "/v2.0/security-group-rules", body).await
    };
    let all = kept(json!({"protocol": "TCP", "port_range_min": 1, "port_range_max": 65535})).await;
    assert_eq!(
        (&all["protocol"], &all["port_range_min"], &all["port_range_max"]),
        (&json!("tcp"), &json!(null), &json!(null))
    );
    let one = kept(json!({"remote_ip_prefix": "10.9.0.5"})).await;
    assert_eq!(one["remote_ip_prefix"], "10.9.0.5/32");
    let range = kept(json!({"remote_ip_prefix": "10.9.0.7/24"})).await;
    assert_eq!(
        (&range["remote_ip_prefix"], &range["normalized_cidr"]),
        (&json!("10.9.0.7/24"), &json!("10.9.0.0/24"))
    );
    let ping = kept(json!({"protocol": "icmp", "ethertype": "IPv6"})).await;
    assert_eq!(ping["protocol"], "ipv6-icmp");
}
