use std::collections::BTreeSet;
use std::time::Duration;

use capstan_sim_openstack::{Fault, Service};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn hard_anti_affinity_spreads_over_hosts_and_then_finds_none() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    let group = json!({"server_group": {"name": "g", "policy": "anti-affinity"}});
    let group = tenant.create(Service::Compute, "/v2.1/os-server-groups", group).await;
    let more = json!({"availability_zone": "az1", "os:scheduler_hints": {"group": group["id"]}});
    let mut hosts = BTreeSet::new();
    for number in 0..3 {
        let server = tenant.server(&format!("s{number}"), &network, more.clone()).await;
        assert_eq!(
            (&server["status"], &server["OS-EXT-AZ:availability_zone"]),
            (&json!("ACTIVE"), &json!("az1"))
        );
        assert!(hosts.insert(server["hostId"].as_str().unwrap().to_owned()));
    }
    let fourth = tenant.server("s3", &network, more).await;
    assert_eq!(fourth["status"], "ERROR");
    assert_eq!(fourth["fault"]["message"], "No valid host was found. There are not enough hosts available.");
}

#[tokio::test]
async fn a_server_beyond_the_quota_is_refused_at_once() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    for number in 0..10 {
        assert_eq!(tenant.order(&format!("s{number}"), &network, json!({})).await.status, 202);
    }
    let refused = tenant.order("s10", &network, json!({})).await;
    let text = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances";
    assert_eq!((refused.status, &refused.body["forbidden"]["message"]), (403, &json!(text)));
}

#[tokio::test]
async fn a_deleted_server_frees_given_ports_and_removes_its_own_and_its_volumes() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    let port = tenant.create(Service::Network, "/v2.0/ports", json!({"port": {"network_id": network}})).await;
    let image = tenant.image().await;
    let root = json!({"boot_index": 0, "uuid": image, "source_type": "image", "destination_type": "volume",
        "volume_size": 20, "delete_on_termination": true});
    let more = json!({"imageRef": "", "networks": [{"port": port["id"]}, {"uuid": network}], "block_device_mapping_v2": [root]});
    let server = tenant.server("s", &network, more).await;
    assert_eq!(server["status"], "ACTIVE", "{server}");
    let volumes = tenant.get(Service::Volume, "/v3/volumes/detail").await;
    assert_eq!(volumes["volumes"][0]["status"], "in-use");
    let path = format!("/v2.1/servers/{}", server["id"].as_str().unwrap());
    assert_eq!(tenant.call(Service::Compute, "DELETE", &path, None).await.status, 204);
    tenant.gone(Service::Compute, &path).await;
    let left = tenant.get(Service::Network, "/v2.0/ports").await;
    let left: Vec<_> = left["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["id"], &it["device_id"], &it["status"]))
        .collect();
    assert_eq!(left, [(&port["id"], &json!(""), &json!("DOWN"))]);
    assert_eq!(tenant.get(Service::Volume, "/v3/volumes").await["volumes"], json!([]));
}

#[tokio::test]
async fn a_dump_is_restored_with_its_pending_work() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    let ordered = tenant.order("s", &network, json!({})).await;
    let path = format!("/v2.1/servers/{}", ordered.body["server"]["id"].as_str().unwrap());
    let dump = world.simulator.dump();
    assert!(!dump.to_string().contains("\"capstan\",\"password\""));
    tenant.call(Service::Compute, "DELETE", &path, None).await;
    tenant.gone(Service::Compute, &path).await;
    world.simulator.restore(dump).unwrap();
    world.pass(Duration::from_secs(60));
    assert_eq!(tenant.get(Service::Compute, &path).await["server"]["status"], "ACTIVE");
}

#[tokio::test]
async fn a_failed_build_leaves_no_port_behind() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    world.simulator.inject(Fault::FailedBuilds { times: 1 }).unwrap();
    let server = tenant.server("s", &network, json!({})).await;
    assert_eq!(server["status"], "ERROR");
    assert_eq!(tenant.get(Service::Network, "/v2.0/ports").await["ports"], json!([]));
    assert_eq!(tenant.server("t", &network, json!({})).await["status"], "ACTIVE");
}

#[tokio::test]
async fn a_flavor_without_a_disk_needs_a_boot_volume() {
    let world = World::new();
    let admin = world.client("admin", "admin").await;
    let flavor = json!({"flavor": {"name": "diskless", "id": "d", "vcpus": 1, "ram": 2048, "disk": 0}});
    admin.create(Service::Compute, "/v2.1/flavors", flavor).await;
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    let refused = tenant.order("s", &network, json!({"flavorRef": "d"})).await;
    let text = "Only volume-backed servers are allowed for flavors with zero disk.";
    assert_eq!((refused.status, &refused.body["forbidden"]["message"]), (403, &json!(text)));
    let root = json!({"boot_index": 0, "uuid": tenant.image().await, "source_type": "image",
        "destination_type": "volume", "volume_size": 20, "delete_on_termination": true});
    let more = json!({"flavorRef": "d", "imageRef": "", "block_device_mapping_v2": [root]});
    assert_eq!(tenant.order("s", &network, more).await.status, 202);
}
