//! Claims about tokens and the catalog.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::network::{Network, NetworkFilter, NewNetwork};
use crate::{Class, ErrorKind};

fn networks() -> Reply {
    ok(json!({ "networks": [] }))
}

#[tokio::test(start_paused = true)]
async fn one_token_serves_all_requests_until_it_ends_soon() {
    let script = Script::new(|_, _| networks());
    let client = script.client();
    for _ in 0..3 {
        client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    }
    assert_eq!(script.logins(), 1);
    // Five minutes before its end it is replaced.
    tokio::time::advance(Duration::from_secs(54 * 60)).await;
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(script.logins(), 1);
    tokio::time::advance(Duration::from_secs(2 * 60)).await;
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(script.logins(), 2);
    let tokens: Vec<_> =
        script.requests().iter().map(|seen| seen.header("x-auth-token").to_owned()).collect();
    assert_eq!(tokens.last().unwrap(), "token-1");
    assert_eq!(client.token().await.unwrap().project_id(), Some("p1id"));
}

#[tokio::test(start_paused = true)]
async fn a_short_token_is_not_replaced_with_every_request() {
    let script = Script::new(|_, _| networks());
    *script.lifetime.lock() = Duration::from_secs(60);
    let client = script.client();
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    tokio::time::advance(Duration::from_secs(40)).await;
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(script.logins(), 1);
    tokio::time::advance(Duration::from_secs(10)).await;
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(script.logins(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_401_brings_one_new_token_for_all_and_changes_are_sent_again() {
    let script = Script::new(|seen, _| match seen.method {
        Method::POST => Reply::Json(201, json!({ "network": { "id": "n" } })),
        _ => networks(),
    });
    let client = script.client();
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    script.revoke();
    *script.takes.lock() = Duration::from_secs(1);
    let new = NewNetwork { name: "n".to_owned(), ..NewNetwork::default() };
    let requests = (0..8).map(|_| client.create::<Network>(&new));
    for created in futures::future::join_all(requests).await {
        assert_eq!(created.unwrap().id.as_str(), "n");
    }
    assert_eq!(script.logins(), 2);
    // Each was refused once and carried out once.
    let posts = script.requests().iter().filter(|seen| seen.method == Method::POST).count();
    assert_eq!(posts, 16);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_refuses_new_tokens_too_is_not_asked_for_ever() {
    let script = Script::new(|_, _| Reply::Json(401, unauthorized()));
    let error = script.client().list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert_eq!((error.class(), error.status()), (Class::Credentials, Some(401)));
    assert_eq!((script.logins(), script.requests().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_not_tried_again_at_once() {
    let script = Script::new(|_, _| networks());
    let deleted = "Could not find Application Credential: 99ed.";
    for refusal in [
        Reply::Json(401, unauthorized()),
        // What Keystone says of an application credential that was deleted.
        Reply::Json(404, json!({ "error": { "code": 404, "message": deleted, "title": "Not Found" } })),
    ] {
        let logins = script.logins();
        script.keystone_says(vec![refusal]);
        let client = script.client();
        let error = client.list::<Network>(&NetworkFilter::default()).await.unwrap_err();
        assert_eq!(error.class(), Class::Credentials);
        assert!(!error.is_retryable());
        tokio::time::advance(Duration::from_secs(10)).await;
        let error = client.list::<Network>(&NetworkFilter::default()).await.unwrap_err();
        assert!(
            matches!(&*error.kind, ErrorKind::RefusedBefore { again_in, .. } if again_in.as_secs() == 20)
        );
        assert!(error.is_retryable());
        assert_eq!(script.logins(), logins + 1);
        tokio::time::advance(Duration::from_secs(21)).await;
        client.list::<Network>(&NetworkFilter::default()).await.unwrap();
        assert_eq!(script.logins(), logins + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_serves_to_its_end_while_keystone_is_down() {
    let script = Script::new(|_, _| networks());
    let client = script.once();
    let list = async || client.list::<Network>(&NetworkFilter::default()).await;
    list().await.unwrap();
    tokio::time::advance(Duration::from_secs(57 * 60)).await;
    script.keystone_says((0..9).map(|_| Reply::Text(503, "down")).collect());
    for _ in 0..3 {
        list().await.unwrap();
    }
    // Keystone is not asked with every request.
    assert_eq!(script.logins(), 2);
    tokio::time::advance(Duration::from_secs(31)).await;
    list().await.unwrap();
    assert_eq!(script.logins(), 3);
    tokio::time::advance(Duration::from_secs(3 * 60)).await;
    let error = list().await.unwrap_err();
    assert_eq!((error.class(), error.status()), (Class::Unavailable, Some(503)));
    // Credentials that are refused are, at once.
    script.keystone_says(vec![Reply::Json(401, unauthorized())]);
    assert_eq!(list().await.unwrap_err().class(), Class::Credentials);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_given_cannot_be_replaced_once_it_ended() {
    let settings = "
clouds:
  t: { auth_type: token, auth: { auth_url: 'https://keystone.example/v3', token: given, project_id: p1id }, region_name: RegionOne }
";
    let script = Script::new(|_, _| networks());
    *script.lifetime.lock() = Duration::from_secs(100);
    let client = script.client_of(cloud(settings), Policy::default());
    client.list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(script.seen.lock()[0].body["auth"]["identity"]["token"]["id"], "given");
    tokio::time::advance(Duration::from_secs(200)).await;
    let error = client.list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert_eq!(*error.kind, ErrorKind::TokenExpired);
    assert_eq!(script.logins(), 1);
}

#[tokio::test(start_paused = true)]
async fn services_are_found_by_type_interface_and_region() {
    let script = Script::new(|_, _| networks());
    let ask = async |settings: &str| {
        let client = script.client_of(cloud(settings), Policy::default());
        client.list::<Network>(&NetworkFilter::default()).await.map(|_| {
            let seen = script.requests().pop().unwrap();
            format!("{}{}", seen.host, seen.path)
        })
    };
    assert_eq!(ask(SETTINGS).await.unwrap(), "neutron.public.regionone.example/v2.0/networks");
    let two = SETTINGS.replace("RegionOne", "RegionTwo\n    interface: internal");
    assert_eq!(ask(&two).await.unwrap(), "neutron.internal.regiontwo.example/v2.0/networks");
    let over = format!("{SETTINGS}    network_endpoint_override: https://other.example/net/\n");
    assert_eq!(ask(&over).await.unwrap(), "other.example/net/v2.0/networks");
    let error = ask(&SETTINGS.replace("RegionOne", "Nowhere")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "network GET /networks: the catalog has no public endpoint of network in region Nowhere: it has internal in \
         RegionOne, internal in RegionTwo, public in RegionOne, public in RegionTwo"
    );
    // Volumes have several names, and want the project in the path.
    let script = Script::new(|_, _| ok(json!({ "volumes": [] })));
    let filter = crate::block_storage::VolumeFilter::default();
    script.client().list::<crate::block_storage::Volume>(&filter).await.unwrap();
    let seen = script.requests().pop().unwrap();
    assert_eq!(
        (seen.host.as_str(), seen.path.as_str()),
        ("cinder.public.regionone.example", "/v3/p1id/volumes/detail")
    );
    let error = script.client().usages("p1id").await.unwrap_err();
    assert!(error.to_string().ends_with("in region RegionOne: the service is not in it"), "{error}");
}
