use std::time::Duration;

use capstan_sim_openstack::{Fault, Service};
use serde_json::{Value, json};

use crate::world::{Client, World};

fn download(uri: &str) -> Value {
    json!({"method": {"name": "web-download", "uri": uri}})
}

async fn queued(tenant: &Client<'_>, body: Value) -> String {
    let made = tenant.call(Service::Image, "POST", "/v2/images", Some(body)).await;
    assert_eq!(made.body["status"], "queued", "{made:?}");
    made.body["id"].as_str().unwrap().to_owned()
}

async fn import(tenant: &Client<'_>, id: &str, uri: &str) -> u16 {
    let path = format!("/v2/images/{id}/import");
    tenant.call(Service::Image, "POST", &path, Some(download(uri))).await.status
}

#[tokio::test]
async fn a_download_makes_an_image_active_and_one_that_fails_leaves_it_queued() {
    let world = World::new();
    let tenant = world.tenant().await;
    let formats =
        json!({"name": "i", "disk_format": "qcow2", "container_format": "bare", "visibility": "private"});
    let id = queued(&tenant, formats).await;
    let path = format!("/v2/images/{id}");
    for (uri, why) in [("ftp://h/i", "the scheme"), ("http://h:8080/i", "the port"), ("i", "no URL")] {
        assert_eq!(import(&tenant, &id, uri).await, 400, "{why}");
    }
    world.simulator.inject(Fault::FailedImports { times: 1 }).unwrap();
    for (end, task) in [("queued", "failure"), ("active", "success")] {
        assert_eq!(import(&tenant, &id, "https://images.example/i.qcow2").await, 202);
        assert_eq!(tenant.get(Service::Image, &path).await["status"], "importing");
        assert_eq!(import(&tenant, &id, "https://images.example/i.qcow2").await, 409);
        world.pass(Duration::from_secs(2));
        assert_eq!(tenant.get(Service::Image, &path).await["status"], end);
        let tasks = tenant.get(Service::Image, &format!("{path}/tasks")).await;
        assert_eq!(tasks["tasks"].as_array().unwrap().last().unwrap()["status"], task);
    }
    assert_eq!(import(&tenant, &id, "https://images.example/i.qcow2").await, 409);
}

#[tokio::test]
async fn a_download_needs_formats_and_a_cloud_that_allows_it() {
    let world = World::new();
    let tenant = world.tenant().await;
    let id = queued(&tenant, json!({"name": "i"})).await;
    assert_eq!(import(&tenant, &id, "https://images.example/i").await, 409);
    world.simulator.set(|settings| settings.import_methods = vec!["glance-direct".to_owned()]);
    assert_eq!(import(&tenant, &id, "https://images.example/i").await, 400);
    let offered = tenant.get(Service::Image, "/v2/info/import").await;
    assert_eq!(offered["import-methods"]["value"], json!(["glance-direct"]));
}
