//! Health checks by name.

use http_body_util::BodyExt;
use serde_json::json;

use crate::client::{Client, read};

#[tokio::test]
async fn health_is_checked_by_name() {
    let client = Client::start().await;
    for (path, code, text) in [
        ("/livez/ping", 200, "ok"),
        ("/readyz/etcd", 200, "ok"),
        ("/readyz/poststarthook/crd-informer-synced", 200, "ok"),
        ("/livez?exclude=etcd", 200, "ok"),
        ("/livez/nothing", 404, "404 page not found\n"),
    ] {
        let reply = client.reply("GET", path, &[], String::new()).await;
        let found = reply.status().as_u16();
        let body = reply.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!((found, &*body), (code, text.as_bytes()), "{path}");
    }
    let (_, index) = read(client.reply("GET", "/", &[], String::new()).await).await;
    assert!(index["paths"].as_array().expect("paths").contains(&json!("/readyz/shutdown")));
}
