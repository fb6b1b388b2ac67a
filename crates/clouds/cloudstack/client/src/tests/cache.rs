use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::{Reply, Script, refusal};
use crate::Credentials;
use crate::commands::{ListTemplates, ListZones};

fn named(name: &str) -> ListZones {
    ListZones { name: Some(name.to_owned()), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_look_up_is_remembered_for_its_time_and_per_question() {
    let script =
        Script::new(|seen, _| Reply::Ok(json!({ "zone": [{ "id": "z", "name": seen.get("name") }] })));
    let client = script.client();
    for _ in 0..3 {
        assert_eq!(client.cached(&named("a")).await.unwrap()[0].name, "a");
        assert_eq!(client.cached(&named("b")).await.unwrap()[0].name, "b");
    }
    assert_eq!(script.seen().len(), 2);
    tokio::time::sleep(Duration::from_secs(301)).await;
    client.cached(&named("a")).await.unwrap();
    assert_eq!(script.seen().len(), 3);
    client.forget();
    client.cached(&named("a")).await.unwrap();
    assert_eq!(script.seen().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_found_or_failed_is_asked_again() {
    let script = Script::new(|_, before| match before {
        0 => Reply::Ok(json!({})),
        1 => refusal(530, 4250, "no"),
        _ => Reply::Ok(json!({ "template": [{ "id": "t", "name": "ubuntu" }] })),
    });
    let client = script.client();
    let question = ListTemplates::default();
    assert!(client.cached(&question).await.unwrap().is_empty());
    client.cached(&question).await.unwrap_err();
    assert_eq!(client.cached(&question).await.unwrap().len(), 1);
    assert_eq!(script.seen()[0].get("templatefilter"), "executable");
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_the_same_at_the_same_time_share_one_request() {
    let script = Script::slow(Duration::from_secs(1), |_, _| {
        Reply::Ok(json!({ "zone": [{ "id": "z", "name": "a" }] }))
    });
    let client = script.client();
    let question = named("a");
    let answers = join_all((0..20).map(|_| client.cached(&question))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_keys_see_nothing_that_was_remembered_for_the_old_ones() {
    let script = Script::new(|_, _| Reply::Ok(json!({ "zone": [{ "id": "z", "name": "a" }] })));
    let (client, keys) = script.rotating();
    client.cached(&named("a")).await.unwrap();
    keys.replace(Credentials::new("the-api-key-of-bob", "the-secret-key-of-bob"));
    client.cached(&named("a")).await.unwrap();
    assert_eq!(script.seen().len(), 2);
}
