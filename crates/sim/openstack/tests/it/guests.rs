use capstan_guest::vm::Phase;
use capstan_guest::{Site, SiteOptions};
use capstan_sim_openstack::Service;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn servers_boot_as_guests_and_a_floating_ip_of_a_load_balancer_leads_to_them() {
    let site = Site::new(World::env(), SiteOptions::default());
    let world = World::on(&site);
    let tenant = world.tenant().await;
    let (network, subnet) = tenant.network("n", "10.6.0.0/24").await;
    tenant.router(&subnet).await;
    let server = tenant.server("s1", &network, json!({"user_data": "I2Nsb3VkLWNvbmZpZwo="})).await;
    let id = server["id"].as_str().unwrap().to_owned();
    let guest = site.vm(&id).unwrap();
    assert_eq!(server["addresses"]["n"][0]["addr"], guest.address.to_string());

    let tree = json!({"loadbalancer": {"name": "lb", "vip_subnet_id": subnet, "listeners": [{"name": "l", "protocol": "TCP",
        "protocol_port": 6443, "default_pool": {"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "members": [{"address": guest.address.to_string(), "protocol_port": 6443, "subnet_id": subnet}]}}]}});
    let balancer = tenant.create(Service::LoadBalancer, "/v2/lbaas/loadbalancers", tree).await;
    tenant.settled(balancer["id"].as_str().unwrap()).await;
    let external = tenant.external().await;
    let ask = json!({"floatingip": {"floating_network_id": external, "port_id": balancer["vip_port_id"]}});
    let floating = tenant.create(Service::Network, "/v2.0/floatingips", ask).await;
    let address = floating["floating_ip_address"].as_str().unwrap().to_owned();
    let behind = || {
        site.balancer(&format!("openstack/{address}:6443"))
            .map(|it| it.members.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(behind(), Some(vec![guest.address]));

    let path = format!("/v2.1/servers/{id}");
    let stop = json!({"os-stop": null});
    assert_eq!(
        tenant.call(Service::Compute, "POST", &format!("{path}/action"), Some(stop)).await.status,
        202
    );
    world.pass(std::time::Duration::from_secs(5));
    assert_eq!(tenant.get(Service::Compute, &path).await["server"]["status"], "SHUTOFF");
    assert_eq!(site.vm(&id).unwrap().phase, Phase::Off);
    tenant.call(Service::Compute, "DELETE", &path, None).await;
    tenant.gone(Service::Compute, &path).await;
    assert!(site.vm(&id).is_none());
    assert_eq!(behind(), Some(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn networks_that_overlap_do_not_share_guests() {
    let site = Site::new(World::env(), SiteOptions::default());
    let world = World::on(&site);
    let tenant = world.tenant().await;
    for name in ["one", "two"] {
        let (network, subnet) = tenant.network(name, "10.6.0.0/24").await;
        let ips = json!([{"subnet_id": subnet, "ip_address": "10.6.0.9"}]);
        let port = tenant
            .create(
                Service::Network,
                "/v2.0/ports",
                json!({"port": {"network_id": network, "fixed_ips": ips}}),
            )
            .await;
        let server = tenant.server("same-name", &network, json!({"networks": [{"port": port["id"]}]})).await;
        assert_eq!(server["status"], "ACTIVE");
    }
    assert_eq!(site.vms().len(), 2);
}
