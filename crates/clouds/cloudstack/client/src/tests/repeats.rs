use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::{Reply, Script, alice, refusal};
use crate::commands::{DeployVirtualMachine, ListCapabilities, ListZones};
use crate::{Client, Code, Credentials, ErrorKind, Limits, Policy};

fn deploy() -> DeployVirtualMachine {
    DeployVirtualMachine::new("z".into(), "o".into(), "t".into())
}

fn zones() -> Reply {
    Reply::Ok(json!({ "count": 1, "zone": [{ "id": "z", "name": "zone" }] }))
}

/// Fails so often, then works.
fn failing(times: usize, failure: fn() -> Reply, success: fn() -> Reply) -> Arc<Script> {
    Script::new(move |_, before| if before < times { failure() } else { success() })
}

#[tokio::test(start_paused = true)]
async fn a_question_is_repeated_after_anything_that_may_pass() {
    let failures: [fn() -> Reply; 7] = [
        || refusal(503, 9999, "not yet"),
        || refusal(429, 9999, "slow down"),
        || refusal(534, 4380, "agent down"),
        || Reply::Text(502, "text/html", "<html>"),
        || Reply::Broken { never_sent: true },
        || Reply::Broken { never_sent: false },
        || Reply::Never,
    ];
    for (at, failure) in failures.into_iter().enumerate() {
        let script = failing(2, failure, zones);
        let found = script.client().list(&ListZones::default()).await;
        assert_eq!(found.map(|found| found.len()).map_err(|error| error.to_string()), Ok(1), "{at}");
        assert_eq!(script.seen().len(), 3, "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_not_repeated_after_what_stays() {
    for code in [400, 401, 431, 432, 530, 531, 537] {
        let script = Script::new(move |_, _| refusal(code, 9999, "no"));
        script.client().list(&ListZones::default()).await.unwrap_err();
        assert_eq!(script.seen().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_repeated_only_if_it_certainly_did_not_happen() {
    let begun: fn() -> Reply = || Reply::Ok(json!({ "jobid": "j", "id": "v" }));
    let safe: [fn() -> Reply; 3] = [
        || refusal(429, 9999, "slow down"),
        || refusal(503, 9999, "not yet"),
        || Reply::Broken { never_sent: true },
    ];
    for (at, failure) in safe.into_iter().enumerate() {
        let script = failing(1, failure, begun);
        script.client().start(&deploy()).await.unwrap();
        assert_eq!(script.seen().len(), 2, "{at}");
    }
    let unsafe_ones: [fn() -> Reply; 5] = [
        || Reply::Broken { never_sent: false },
        || Reply::Never,
        || Reply::Text(504, "text/html", "<html>"),
        || refusal(530, 4250, "internal"),
        || refusal(534, 4380, "agent down"),
    ];
    for (at, failure) in unsafe_ones.into_iter().enumerate() {
        let script = failing(1, failure, begun);
        let error = script.client().start(&deploy()).await.unwrap_err();
        assert!(error.is_ambiguous(), "{at}: {error}");
        assert_eq!(script.seen().len(), 1, "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_double_and_the_server_may_ask_for_longer_ones() {
    let begun = Instant::now();
    let script = Script::new(|_, _| refusal(503, 9999, "not yet"));
    script.client().list(&ListZones::default()).await.unwrap_err();
    assert_eq!(script.seen().len(), 4);
    assert_eq!(begun.elapsed().as_millis(), 500 + 1000 + 2000);

    let begun = Instant::now();
    let script = Script::new(|_, before| match before {
        0 => Reply::RetryAfter(503, 7, json!({ "x": { "errorcode": 503, "errortext": "" }})),
        _ => zones(),
    });
    script.client().list(&ListZones::default()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_silences_the_whole_account_and_no_other() {
    let script = Script::new(|seen, before| match before {
        0 => Reply::RetryAfter(429, 10, json!({ "x": { "errorcode": 429, "errortext": "" }})),
        _ if seen.command == "listCapabilities" => Reply::Ok(json!({ "capability": {} })),
        _ => zones(),
    });
    let endpoint = script.endpoint(Limits::default());
    let client = Client::new(endpoint.clone(), Arc::new(alice()));
    let bob = Client::new(endpoint, Arc::new(Credentials::new("api-of-bob", "the-secret-key-of-bob")));
    let begun = Instant::now();
    let limited = tokio::spawn({
        let client = client.clone();
        async move { client.list(&ListZones::default()).await.map(|_| ()) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    bob.list(&ListZones::default()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 1, "another account is not held up");
    client.call(&ListCapabilities {}).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 10);
    limited.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn keys_refused_three_times_are_not_shown_again_until_a_while_passed_or_they_changed() {
    let script = Script::new(|seen, _| match seen.key.as_str() {
        "the-api-key-of-bob" => zones(),
        _ => Reply::Status(401, json!({ "x": { "errorcode": 401, "errortext": "unable to verify" }})),
    });
    let (client, keys) = script.rotating();
    for _ in 0..5 {
        let error = client.list(&ListZones::default()).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::Unauthorized));
    }
    assert_eq!(script.seen().len(), 3);
    tokio::time::sleep(Duration::from_secs(31)).await;
    client.list(&ListZones::default()).await.unwrap_err();
    assert_eq!(script.seen().len(), 4);
    keys.replace(Credentials::new("the-api-key-of-bob", "the-secret-key-of-bob"));
    client.list(&ListZones::default()).await.unwrap();
    assert_eq!(script.seen().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_refusal_among_successes_is_an_unknown_command_and_closes_nothing() {
    let script = Script::new(|seen, _| match seen.command.as_str() {
        "listCapabilities" => Reply::Status(401, json!({ "x": { "errorcode": 401, "errortext": "" }})),
        _ => zones(),
    });
    let client = script.client();
    for _ in 0..5 {
        client.call(&ListCapabilities {}).await.unwrap_err();
        client.list(&ListZones::default()).await.unwrap();
    }
    assert_eq!(script.seen().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up_after_the_time_limit() {
    let script = Script::new(|_, _| Reply::Never);
    let policy = Policy { attempts: 1, ..Policy::default() };
    let begun = Instant::now();
    let error = script.client_with(policy).list(&ListZones::default()).await.unwrap_err();
    assert_eq!(*error.kind, ErrorKind::TimedOut(Duration::from_secs(120)));
    assert_eq!(begun.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_never_gets_more_requests_at_a_time_than_allowed() {
    let script = Script::slow(Duration::from_secs(1), |_, _| zones());
    let endpoint = script.endpoint(Limits { concurrent: 3, ..Limits::default() });
    let clients: Vec<Client> = (0..4).map(|_| Client::new(endpoint.clone(), Arc::new(alice()))).collect();
    let begun = Instant::now();
    let question = ListZones::default();
    join_all((0..12).map(|n| clients[n % 4].list(&question))).await;
    assert_eq!(script.under_way.lock().1, 3);
    assert_eq!(begun.elapsed().as_secs(), 4);
    assert_eq!(endpoint.metrics().calls("listZones"), 12);
}
