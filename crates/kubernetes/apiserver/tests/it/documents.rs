//! Documents, headers, transformations.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::{Client, read};

#[tokio::test]
async fn an_outdated_url_of_a_document_redirects_to_the_current_one() {
    let client = Client::start().await;
    let (_, index) = client.get("/openapi/v3").await;
    let present = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("an address");
    let reply = client.reply("GET", present, &[], String::new()).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["cache-control"]),
        (200, &"public, immutable".parse().expect("a value"))
    );
    let reply = client.reply("GET", "/openapi/v3/apis/apps/v1?hash=OLD", &[], String::new()).await;
    assert_eq!(reply.status().as_u16(), 301);
    assert_eq!(reply.headers()["location"], present);
}

#[tokio::test]
async fn a_warning_past_ascii_reaches_the_client() {
    let client = Client::start().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "größe": 1});
    let headers = [("content-type", "application/json")];
    let path = "/api/v1/namespaces/default/configmaps?fieldValidation=Warn";
    let reply = client.reply("POST", path, &headers, object.to_string()).await;
    assert_eq!(reply.status().as_u16(), 201);
    let warning = String::from_utf8_lossy(reply.headers()["warning"].as_bytes()).into_owned();
    assert_eq!(warning, r#"299 - "unknown field \"größe\"""#);
}

#[tokio::test]
async fn the_metadata_of_an_object_is_not_that_of_a_list() {
    let client = Client::start().await;
    let collection = "/api/v1/namespaces/default/configmaps";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    client.create(collection, &object).await;
    let one = format!("{collection}/a");
    let cases = [
        (collection, "PartialObjectMetadata", 406),
        (collection, "PartialObjectMetadataList", 200),
        (&one, "PartialObjectMetadata", 200),
        (&one, "PartialObjectMetadataList", 406),
    ];
    for (path, shape, code) in cases {
        let accept = format!("application/json;as={shape};g=meta.k8s.io;v=v1");
        let (got, body): (u16, Value) =
            read(client.reply("GET", path, &[("accept", &accept)], String::new()).await).await;
        assert_eq!(got, code, "{shape} of {path}: {body}");
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_clients_that_take_gzip() {
    let client = Client::start().await;
    let collection = "/api/v1/namespaces/default/configmaps";
    for n in 0..20 {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{n}")},
            "data": {"text": "abcdefgh".repeat(2500)},
        });
        client.create(collection, &object).await;
    }
    let one = format!("{collection}/c1");
    let cases = [
        (collection, "deflate, gzip", true),
        (collection, "gzip", true),
        (collection, "br", false),
        (&one, "gzip", false),
    ];
    let (_, plain) = client.get(collection).await;
    for (path, encoding, compressed) in cases {
        let reply = client.reply("GET", path, &[("accept-encoding", encoding)], String::new()).await;
        assert_eq!(reply.headers().get("content-encoding").is_some(), compressed, "{encoding} of {path}");
        if compressed {
            assert_eq!(reply.headers()["vary"], "Accept-Encoding");
            let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
            assert!(bytes.len() < 40_000, "{} bytes", bytes.len());
            let unpacked: Value =
                serde_json::from_reader(flate2::read::GzDecoder::new(&bytes[..])).expect("the list");
            assert_eq!(unpacked, plain);
        }
    }
    let path = format!("{collection}?watch=true&resourceVersion=1");
    let watch = client.reply("GET", &path, &[("accept-encoding", "gzip")], String::new()).await;
    assert!(watch.headers().get("content-encoding").is_none());
}

#[tokio::test]
async fn requests_watches_and_objects_are_counted() {
    let client = Client::start().await;
    let collection = "/api/v1/namespaces/default/secrets";
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let mut watch = client.watch(&format!("{collection}?watch=true")).await;
    client.create(collection, &object).await;
    client.create(collection, &object).await;
    assert_eq!(watch.names(1).await, ["ADDED a"]);
    client.get("/apis/not.there/v1/things/made-up-by-a-client").await;
    let page = metrics(&client).await;
    let secrets = r#"group="",resource="secrets""#;
    let created = format!(
        r#"component="apiserver",dry_run="",{secrets},scope="resource",subresource="",verb="POST",version="v1"}} 1"#
    );
    for line in [
        format!(r#"apiserver_request_total{{code="201",{created}"#),
        format!(r#"apiserver_request_total{{code="409",{created}"#),
        format!(
            r#"apiserver_longrunning_requests{{component="apiserver",{secrets},version="v1",scope="namespace",subresource="",verb="WATCH"}} 1"#
        ),
        format!(r#"apiserver_watch_events_total{{{secrets},version="v1"}} 1"#),
        r#"apiserver_storage_objects{resource="secrets"} 1"#.to_owned(),
        r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#.to_owned(),
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is missing in\n{page}");
    }
    let buckets = page.lines().filter(|l| l.starts_with("apiserver_request_duration_seconds_bucket"));
    assert!(buckets.filter(|l| l.contains(r#"verb="POST""#) && l.contains(r#"le="+Inf"} 2"#)).count() == 1);
    assert!(!page.contains("made-up"));

    drop(watch);
    let closed = format!(r#"{secrets},version="v1",scope="namespace",subresource="",verb="WATCH"}} 0"#);
    assert!(metrics(&client).await.contains(&closed));
}

async fn metrics(client: &Client) -> String {
    let reply = client.reply("GET", "/metrics", &[], String::new()).await;
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("a text")
}

#[tokio::test]
async fn the_response_to_head_has_no_body() {
    let client = Client::start().await;
    for path in ["/version", "/api/v1/namespaces/default", "/nothing"] {
        let reply = client.reply("HEAD", path, &[], String::new()).await;
        assert_ne!(reply.headers()["content-length"], "0", "{path}");
        assert!(reply.into_body().collect().await.expect("a body").to_bytes().is_empty(), "{path}");
    }
}
