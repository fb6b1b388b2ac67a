//! Claims about errors: what they mean, what is repeated.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::load_balancer::LoadBalancer;
use crate::network::{Network, NetworkFilter, NewNetwork};
use crate::{Class, Deletion, ErrorKind, Id, Service, read_refusal};

#[test]
fn the_same_condition_has_one_class_whatever_the_service_calls_it() {
    use Service::*;
    let nova = |fault: &str, message: &str| json!({ fault: { "code": 0, "message": message } });
    let neutron = |kind: &str| json!({ "NeutronError": { "type": kind, "message": "text", "detail": "" } });
    let octavia = |text: &str| json!({ "faultcode": "Client", "faultstring": text, "debuginfo": null });
    let web = |message: &str| json!({ "message": message, "code": "404 Not Found", "title": "Not Found" });
    let keystone = |message: &str| json!({ "error": { "code": 0, "message": message, "title": "" } });
    let nothing_there = "The resource could not be found.<br /><br />\n\n\n";
    let table = [
        (
            Compute,
            403,
            nova(
                "forbidden",
                "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
            ),
            Class::Quota,
        ),
        (
            Compute,
            403,
            nova(
                "forbidden",
                "Project p is over a limit for [Resource servers is over limit of 2 due to current usage 2 and delta 1]",
            ),
            Class::Quota,
        ),
        (
            Compute,
            403,
            nova("forbidden", "Only volume-backed servers are allowed for flavors with zero disk."),
            Class::Parameter,
        ),
        (Network, 409, neutron("OverQuota"), Class::Quota),
        (
            BlockStorage,
            413,
            nova("overLimit", "VolumeLimitExceeded: Maximum number of volumes allowed (0) exceeded"),
            Class::Quota,
        ),
        (LoadBalancer, 403, octavia("Quota has been met for resources: Load Balancer"), Class::Quota),
        (Compute, 404, nova("itemNotFound", "Instance x could not be found."), Class::NotFound),
        (Network, 404, neutron("PortNotFound"), Class::NotFound),
        (Image, 404, web("Failed to find image x<br /><br />\n\n\n"), Class::NotFound),
        (LoadBalancer, 404, octavia("Load Balancer x not found."), Class::NotFound),
        (Identity, 404, keystone("Could not find project: x."), Class::NotFound),
        // Paths that the service does not have are no things that are gone.
        (Compute, 404, web(nothing_there), Class::Protocol),
        (Image, 404, web(nothing_there), Class::Protocol),
        (Network, 404, neutron("HTTPNotFound"), Class::Protocol),
        (LoadBalancer, 404, json!({ "code": 404, "title": "Not Found", "description": "" }), Class::Protocol),
        (Network, 404, neutron("ExternalGatewayForFloatingIPNotFound"), Class::Parameter),
        (LoadBalancer, 409, octavia("Load Balancer x is immutable and cannot be updated."), Class::Busy),
        (LoadBalancer, 409, octavia("Invalid state PENDING_CREATE of loadbalancer resource x"), Class::Busy),
        (
            LoadBalancer,
            409,
            octavia("Another Listener on this Load Balancer is already using protocol TCP"),
            Class::Exists,
        ),
        (LoadBalancer, 501, octavia("unsupported"), Class::Unsupported),
        (Compute, 409, nova("conflictingRequest", "Instance x is not ready"), Class::Busy),
        (Compute, 409, nova("conflictingRequest", "Port x is still in use."), Class::InUse),
        (Compute, 409, nova("conflictingRequest", "Key pair 'k' already exists."), Class::Exists),
        (Network, 409, neutron("NetworkInUse"), Class::InUse),
        (Network, 409, neutron("PortInUseAsTrunkParent"), Class::InUse),
        (Network, 409, neutron("SecurityGroupRuleExists"), Class::Exists),
        (Network, 409, neutron("IpAddressGenerationFailure"), Class::Capacity),
        (Network, 409, neutron("MacAddressInUse"), Class::Exists),
        (Network, 403, neutron("PolicyNotAuthorized"), Class::Permission),
        (Network, 500, neutron("HTTPInternalServerError"), Class::Internal),
        (
            Placement,
            403,
            json!({ "errors": [{ "status": 403, "title": "Forbidden", "detail": "no" }] }),
            Class::Permission,
        ),
        (
            Compute,
            406,
            nova("computeFault", "Version 2.999 is not supported by the API."),
            Class::Unsupported,
        ),
        (Compute, 429, json!({}), Class::RateLimited),
        (Compute, 503, json!({}), Class::Unavailable),
    ];
    for (service, status, body, class) in table {
        let refusal = read_refusal(service, status, &HeaderMap::new(), body.to_string().as_bytes());
        assert_eq!(refusal.class, class, "{service} {status} {body}");
        assert!(!refusal.text.contains("<br"), "{}", refusal.text);
    }
    let html = read_refusal(Identity, 404, &HeaderMap::new(), b"<!doctype html><title>404 Not Found</title>");
    assert_eq!((html.class, html.text.as_str()), (Class::Protocol, ""));
}

#[tokio::test(start_paused = true)]
async fn the_request_id_and_the_services_words_are_kept() {
    let script = Script::new(|_, _| {
        let id = vec![("x-openstack-request-id", "req-1".to_owned())];
        let error = json!({ "type": "NetworkInUse", "message": "Unable to complete.", "detail": "" });
        Reply::With(409, id, json!({ "NeutronError": error }))
    });
    let error = script.client().delete(&Id::<Network>::from("n")).await.unwrap_err();
    assert_eq!(error.request_id(), Some("req-1"));
    assert_eq!(
        error.to_string(),
        "network DELETE /networks/n: HTTP 409 NetworkInUse: Unable to complete. (req-1)"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_none_and_its_removal_done() {
    let script = Script::new(|_, _| neutron(404, "NetworkNotFound", "Network n could not be found."));
    let client = script.client();
    let id = Id::<Network>::from("n");
    assert_eq!(client.find(&id).await.unwrap(), None);
    assert_eq!(client.delete(&id).await.unwrap(), Deletion::Absent);
    // A page of a proxy says nothing about the network.
    let script = Script::new(|_, _| Reply::Text(404, "<html>no such site</html>"));
    let client = script.client();
    assert_eq!(client.find(&id).await.unwrap_err().class(), Class::Protocol);
    assert_eq!(client.delete(&id).await.unwrap_err().class(), Class::Protocol);
}

fn new() -> NewNetwork {
    NewNetwork { name: "n".to_owned(), ..NewNetwork::default() }
}

#[tokio::test(start_paused = true)]
async fn reads_and_removals_are_repeated_and_creations_only_when_nothing_happened() {
    type Make = fn() -> Reply;
    // What comes back, whether a creation is repeated, whether it may have happened.
    let table: [(Make, bool, bool); 6] = [
        (|| Reply::Broken { never_sent: true }, true, false),
        (|| Reply::Broken { never_sent: false }, false, true),
        (|| Reply::Json(500, json!({})), false, true),
        (|| Reply::Text(503, "down"), false, true),
        (|| Reply::Text(504, "<html>"), false, true),
        (|| Reply::Json(429, json!({})), true, false),
    ];
    for (fail, repeated, ambiguous) in table {
        let script = Script::new(move |seen, before| match (before, &seen.method) {
            (0, _) => fail(),
            (_, &Method::POST) => Reply::Json(201, json!({ "network": { "id": "n" } })),
            (_, &Method::DELETE) => Reply::Json(204, json!(null)),
            _ => ok(json!({ "networks": [] })),
        });
        match script.client().create::<Network>(&new()).await {
            Ok(_) => assert!(repeated),
            Err(error) => {
                assert!(!repeated, "{error}");
                assert!(error.is_retryable(), "{error}");
            }
        }
        let error = Script::new(move |_, _| fail()).once().create::<Network>(&new()).await.unwrap_err();
        assert_eq!(error.is_ambiguous(), ambiguous, "{error}");
        for removal in [false, true] {
            let script = Script::new(move |seen, before| match (before, &seen.method) {
                (0, _) => fail(),
                (_, &Method::DELETE) => Reply::Json(204, json!(null)),
                _ => ok(json!({ "networks": [] })),
            });
            match removal {
                true => drop(script.client().delete(&Id::<Network>::from("n")).await.unwrap()),
                false => drop(script.client().list::<Network>(&NetworkFilter::default()).await.unwrap()),
            }
            assert_eq!(script.requests().len(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_load_balancer_is_left_to_the_caller() {
    let script = Script::new(|_, _| {
        let text = "Load Balancer x is immutable and cannot be updated.";
        Reply::Json(409, json!({ "faultcode": "Client", "faultstring": text, "debuginfo": null }))
    });
    let error = script.client().delete_load_balancer(&Id::<LoadBalancer>::from("x"), true).await.unwrap_err();
    assert_eq!(error.class(), Class::Busy);
    assert!(error.is_retryable() && !error.is_ambiguous());
    assert_eq!(script.requests().len(), 1);
    assert_eq!(script.requests()[0].query("cascade"), Some("true"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_or_is_too_long_is_given_up() {
    let script = Script::new(|_, _| Reply::Never);
    let before = tokio::time::Instant::now();
    let error = script.once().create::<Network>(&new()).await.unwrap_err();
    assert_eq!(*error.kind, ErrorKind::TimedOut(Duration::from_secs(120)));
    assert!(error.is_ambiguous());
    assert_eq!(before.elapsed().as_secs(), 120);
    let script = Script::new(|_, _| Reply::Json(200, json!({ "networks": ["x".repeat(20_000)] })));
    let policy = Policy { longest_answer: 10_000, ..Policy::default() };
    let client = script.client_of(cloud(SETTINGS), policy);
    let error = client.list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert_eq!(error.class(), Class::Protocol);
    let long = json!({ "NeutronError": { "type": "X", "message": "word ".repeat(5000), "detail": "" } });
    let refusal = read_refusal(Service::Network, 400, &HeaderMap::new(), long.to_string().as_bytes());
    assert!(refusal.text.len() < 1100 && refusal.text.ends_with('…'));
}

#[tokio::test(start_paused = true)]
async fn the_pause_that_a_service_asks_for_is_kept() {
    let script = Script::new(|_, before| match before {
        0 => Reply::With(429, vec![("retry-after", "7".to_owned())], json!({})),
        _ => ok(json!({ "networks": [] })),
    });
    let before = tokio::time::Instant::now();
    script.client().list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn an_id_from_outside_leads_nowhere_else() {
    let script = Script::new(|_, _| neutron(404, "NetworkNotFound", "no"));
    let client = script.client();
    client.find(&Id::<Network>::from("../../v3/users?x=1#y")).await.unwrap();
    assert_eq!(script.requests()[0].path, "/v2.0/networks/..%2F..%2Fv3%2Fusers%3Fx%3D1%23y");
    let error = client.delete(&Id::<Network>::from("")).await.unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::Unwritable(why) if why == "the id is empty"));
    client.find(&Id::<Network>::from("..")).await.unwrap_err();
    assert_eq!(script.requests().len(), 1);
}
