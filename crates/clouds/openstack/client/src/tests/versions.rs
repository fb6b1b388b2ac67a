//! Claims about microversions.

use serde_json::json;

use super::*;
use crate::compute::{Flavor, FlavorFilter, NewServer, NewServerGroup, ServerGroup};
use crate::{Class, ErrorKind, Microversion};

/// A Nova with microversions up to this one.
fn nova(max: &'static str) -> Arc<Script> {
    Script::new(move |seen, _| match seen.path.as_str() {
        "/v2.1/" => ok(json!({ "version": { "id": "v2.1", "version": max, "min_version": "2.1" } })),
        "/v2.1/servers" => Reply::Json(202, json!({ "server": { "id": "s", "adminPass": "x" } })),
        "/v2.1/os-server-groups" => {
            ok(json!({ "server_group": { "id": "g", "policies": ["anti-affinity"] } }))
        }
        _ => ok(json!({ "flavors": [] })),
    })
}

#[tokio::test(start_paused = true)]
async fn the_newest_version_that_both_sides_know_is_sent_and_asked_for_once() {
    for (max, sent) in [("2.103", "compute 2.61"), ("2.38", "compute 2.38")] {
        let script = nova(max);
        let client = script.client();
        for _ in 0..2 {
            client.list::<Flavor>(&FlavorFilter::default()).await.unwrap();
        }
        let requests = script.requests();
        let documents = requests.iter().filter(|seen| seen.path == "/v2.1/").count();
        assert_eq!((documents, requests.len()), (1, 3));
        assert_eq!(requests[2].header("openstack-api-version"), sent);
        assert_eq!(requests[2].header("x-openstack-nova-api-version"), sent.trim_start_matches("compute "));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_an_old_service_cannot_carry_out_is_not_sent() {
    let script = nova("2.50");
    let client = script.client();
    let plain = NewServer { name: "m".to_owned(), flavor: "f".into(), ..NewServer::default() };
    assert_eq!(client.create_server(&plain).await.unwrap().as_str(), "s");
    let tagged = NewServer { tags: vec!["t".to_owned()], ..plain };
    let error = client.create_server(&tagged).await.unwrap_err();
    assert_eq!(error.class(), Class::Unsupported);
    assert!(
        matches!(&*error.kind, ErrorKind::Microversion { wanted, .. } if wanted.at_least == Microversion(2, 52))
    );
    assert_eq!(
        error.to_string(),
        "compute POST /servers: the call needs microversion 2.52 or later; the service has 2.1 to 2.50"
    );
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn groups_are_made_in_the_words_of_the_version() {
    let script = nova("2.103");
    let client = script.client();
    let soft = NewServerGroup {
        name: "g".to_owned(),
        policy: "soft-anti-affinity".to_owned(),
        ..NewServerGroup::default()
    };
    assert_eq!(client.create::<ServerGroup>(&soft).await.unwrap().policy(), "anti-affinity");
    let seen = script.requests().pop().unwrap();
    assert_eq!(seen.header("openstack-api-version"), "compute 2.63");
    assert_eq!(seen.body, json!({ "server_group": { "name": "g", "policies": ["soft-anti-affinity"] } }));
    let two = NewServerGroup { policy: "anti-affinity".to_owned(), max_server_per_host: Some(2), ..soft };
    client.create::<ServerGroup>(&two).await.unwrap();
    let seen = script.requests().pop().unwrap();
    assert_eq!(seen.header("openstack-api-version"), "compute 2.64");
    assert_eq!(seen.body["server_group"]["rules"], json!({ "max_server_per_host": 2 }));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_replaced_is_asked_again_for_its_versions() {
    let script = Script::new(|seen, before| match (seen.path.as_str(), before) {
        ("/v2.1/", 0) => ok(json!({ "version": { "id": "v2.1", "version": "2.60", "min_version": "2.1" } })),
        ("/v2.1/", _) => ok(json!({ "version": { "id": "v2.1", "version": "2.10", "min_version": "2.1" } })),
        (_, 1) => {
            let message = "Version 2.60 is not supported by the API. Minimum is 2.1 and maximum is 2.10.";
            Reply::Json(406, json!({ "computeFault": { "code": 406, "message": message } }))
        }
        _ => ok(json!({ "flavors": [] })),
    });
    let client = script.client();
    let error = client.list::<Flavor>(&FlavorFilter::default()).await.unwrap_err();
    assert_eq!(error.class(), Class::Unsupported);
    client.list::<Flavor>(&FlavorFilter::default()).await.unwrap();
    assert_eq!(script.requests().pop().unwrap().header("openstack-api-version"), "compute 2.10");
}
