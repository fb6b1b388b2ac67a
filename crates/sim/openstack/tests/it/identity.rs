use std::time::Duration;

use capstan_sim_openstack::Service;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn a_token_expires_everywhere_after_its_lifetime() {
    let world = World::new();
    let tenant = world.tenant().await;
    assert_eq!(tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await.status, 200);
    world.pass(Duration::from_secs(86_401));
    for (service, path) in [
        (Service::Identity, "/v3/auth/projects"),
        (Service::Compute, "/v2.1/servers"),
        (Service::Network, "/v2.0/networks"),
        (Service::Image, "/v2/images"),
        (Service::LoadBalancer, "/v2/lbaas/loadbalancers"),
    ] {
        assert_eq!(tenant.call(service, "GET", path, None).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_by_keystone_and_accepted_by_services_that_cached_it() {
    let world = World::new();
    let tenant = world.tenant().await;
    tenant.get(Service::Network, "/v2.0/networks").await;
    let token = tenant.token.clone();
    let mut request = http::Request::builder().method("DELETE").uri("/v3/auth/tokens");
    for name in ["x-auth-token", "x-subject-token"] {
        request = request.header(name, &token);
    }
    let revoked = world
        .simulator
        .call("RegionOne", Service::Identity, request.body(bytes::Bytes::new()).unwrap())
        .await;
    assert_eq!(revoked.unwrap().status(), 204);
    assert_eq!(tenant.call(Service::Identity, "GET", "/v3/auth/projects", None).await.status, 401);
    assert_eq!(tenant.call(Service::Network, "GET", "/v2.0/networks", None).await.status, 200);
    assert_eq!(tenant.call(Service::Compute, "GET", "/v2.1/servers", None).await.status, 401);
    world.pass(Duration::from_secs(301));
    assert_eq!(tenant.call(Service::Network, "GET", "/v2.0/networks", None).await.status, 401);
}

#[tokio::test]
async fn a_restricted_application_credential_makes_no_others_and_dies_with_its_deletion() {
    let world = World::new();
    let tenant = world.tenant().await;
    let me = tenant.call(Service::Identity, "GET", "/v3/auth/projects", None).await;
    let project = me.body["projects"][0]["id"].clone();
    let admin = world.client("admin", "admin").await;
    let users = admin.get(Service::Identity, "/v3/users?name=capstan").await;
    let user = users["users"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v3/users/{user}/application_credentials");
    let made =
        tenant.create(Service::Identity, &path, json!({"application_credential": {"name": "c"}})).await;
    assert_eq!((&made["project_id"], &made["unrestricted"]), (&project, &Value::Null));
    let log_in = || async {
        let identity = json!({"methods": ["application_credential"],
            "application_credential": {"id": made["id"], "secret": made["secret"]}});
        world
            .send(
                None,
                Service::Identity,
                "POST",
                "/v3/auth/tokens",
                Some(json!({"auth": {"identity": identity}})),
            )
            .await
            .unwrap()
    };
    let token = log_in().await.token.unwrap();
    let by_credential = crate::world::Client { world: &world, token };
    let another = json!({"application_credential": {"name": "d"}});
    assert_eq!(by_credential.call(Service::Identity, "POST", &path, Some(another)).await.status, 403);
    let shown = tenant.get(Service::Identity, &path).await;
    assert_eq!(shown["application_credentials"][0]["secret"], Value::Null);
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(tenant.call(Service::Identity, "DELETE", &one, None).await.status, 204);
    assert_eq!(log_in().await.status, 404);
    assert_eq!(by_credential.call(Service::Identity, "GET", "/v3/auth/projects", None).await.status, 404);
}

#[tokio::test]
async fn regions_share_keystone_and_nothing_else() {
    let mut world = World::new();
    let token = world.token("capstan", "capstan").await;
    let catalog = world.send(Some(&token), Service::Identity, "GET", "/v3/auth/catalog", None).await.unwrap();
    let regions: std::collections::BTreeSet<&str> = catalog.body["catalog"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|service| service["endpoints"].as_array().unwrap())
        .filter_map(|endpoint| endpoint["region"].as_str())
        .collect();
    assert_eq!(regions.into_iter().collect::<Vec<_>>(), ["RegionOne", "RegionTwo"]);
    world.tenant().await.network("n", "10.6.0.0/24").await;
    world.region = "RegionTwo".to_owned();
    let tenant = crate::world::Client { world: &world, token };
    let found = tenant.get(Service::Network, "/v2.0/networks?name=n").await;
    assert_eq!(found["networks"], json!([]));
}

#[tokio::test]
async fn another_project_sees_nothing_of_the_tenant() {
    let world = World::new();
    let tenant = world.tenant().await;
    let (network, _) = tenant.network("n", "10.6.0.0/24").await;
    let mallory = world.client("mallory", "other").await;
    let path = format!("/v2.0/networks/{network}");
    assert_eq!(mallory.call(Service::Network, "GET", &path, None).await.status, 404);
    assert_eq!(mallory.call(Service::Network, "DELETE", &path, None).await.status, 404);
}

#[tokio::test]
async fn an_application_credential_hands_on_no_more_roles_than_its_token_has_and_goes_with_a_role() {
    let world = World::new();
    let tenant = world.tenant().await;
    let admin = world.client("admin", "admin").await;
    let users = admin.get(Service::Identity, "/v3/users?name=capstan").await;
    let user = users["users"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v3/users/{user}/application_credentials");
    let wanted = |name: &str, roles: &[&str]| {
        let roles: Vec<Value> = roles.iter().map(|role| json!({"name": role})).collect();
        json!({"application_credential": {"name": name, "roles": roles, "unrestricted": true}})
    };
    let made = tenant.create(Service::Identity, &path, wanted("member", &["member"])).await;
    let again = tenant.call(Service::Identity, "POST", &path, Some(wanted("member", &["member"]))).await;
    assert_eq!(again.status, 409, "names are unique within a user");
    let identity = json!({"methods": ["application_credential"],
        "application_credential": {"id": made["id"], "secret": made["secret"]}});
    let body = json!({"auth": {"identity": identity}});
    let answer =
        world.send(None, Service::Identity, "POST", "/v3/auth/tokens", Some(body.clone())).await.unwrap();
    let member = crate::world::Client { world: &world, token: answer.token.unwrap() };
    let more = wanted("more", &["member", "load-balancer_member"]);
    assert_eq!(member.call(Service::Identity, "POST", &path, Some(more)).await.status, 400);
    let same = wanted("same", &["member"]);
    assert_eq!(member.call(Service::Identity, "POST", &path, Some(same)).await.status, 201);
    let project = made["project_id"].as_str().unwrap();
    let roles = admin.get(Service::Identity, "/v3/roles?name=load-balancer_member").await;
    let role = roles["roles"][0]["id"].as_str().unwrap();
    let grant = format!("/v3/projects/{project}/users/{user}/roles/{role}");
    assert_eq!(admin.call(Service::Identity, "DELETE", &grant, None).await.status, 204);
    let left = admin.get(Service::Identity, &path).await;
    assert_eq!(left["application_credentials"], json!([]), "whichever role was taken away");
    let answer = world.send(None, Service::Identity, "POST", "/v3/auth/tokens", Some(body)).await.unwrap();
    assert_eq!(answer.status, 401, "it is not said that there is none");
}
