//! More concurrent requests than allowed.

use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, InFlightLimits};
use http_body_util::BodyExt;
use serde_json::json;
use std::future::Future as _;
use std::task::{Context, Waker};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn requests_beyond_the_limit_get_429() {
    let limits = InFlightLimits { read_only: 1, mutating: 1 };
    let admin = Client::with(Config::in_memory().trusting_everybody().with_in_flight(limits)).await;
    let jane = admin.as_user(User::new("jane", ["system:authenticated"]));
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});

    // Its body never arrives: it stays in flight.
    let upload = jane.upload_without_end("POST", MAPS);
    let mut upload = Box::pin(upload);
    assert!(upload.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());

    let refused = jane.reply("POST", MAPS, &[], map("a").to_string()).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["content-type"], "text/plain; charset=utf-8");
    let text = refused.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(text, "Too many requests, please try again later.\n");

    assert_eq!(jane.get(MAPS).await.0, 200, "reads have a limit of their own");
    assert_eq!(admin.create(MAPS, &map("a")).await.0, 201, "administrators are exempt");
    let mut watch = jane.watch(&format!("{MAPS}?watch=true&resourceVersion=1")).await;
    let _other = jane.watch(&format!("{MAPS}?watch=true")).await;
    assert!(watch.next().await.is_some(), "watches do not count");

    drop(upload);
    assert_eq!(jane.create(MAPS, &map("b")).await.0, 201);
}
