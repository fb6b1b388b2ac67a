//! Lists of many objects that would expand to gigabytes.

use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::{Audit, Config};
use capstan_audit::{AuditLog, LogOptions, Policy};
use http_body_util::BodyExt;

use super::bodies::{WIDGETS, define_widgets, repeated, widget};
use super::{confined, confined_with};
use crate::client::Client;

/// Objects that take 55 MiB each when they are decoded: together more than the process may have.
const OBJECTS: usize = 20;

async fn create_dense(client: &Client, names: std::ops::Range<usize>) {
    let dense = format!("\"any\":{{\"l\":[{}]}}", repeated(r#"{"":0}"#, 600_000));
    for n in names {
        let body = widget(&dense).replace(r#""name":"a"},"spec""#, &format!(r#""name":"w{n}"}},"spec""#));
        let reply = client.reply("POST", WIDGETS, &[("content-type", "application/json")], body).await;
        assert_eq!(reply.status(), 201);
    }
}

#[test]
fn lists_that_are_not_sent_as_they_are_stored() {
    confined(module_path!(), "lists_that_are_not_sent_as_they_are_stored", |client| async move {
        define_widgets(&client).await;
        create_dense(&client, 0..OBJECTS).await;
        let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        for (query, accept) in
            [("", "application/yaml"), ("?pretty=true", "application/json"), ("", metadata)]
        {
            let path = format!("{WIDGETS}{query}");
            let reply = client.reply("GET", &path, &[("accept", accept)], String::new()).await;
            assert_eq!(reply.status(), 200, "{path} {accept}");
            let (mut body, mut bytes) = (reply.into_body(), 0);
            while let Some(frame) = body.frame().await {
                bytes += frame.expect("a frame").into_data().map_or(0, |data| data.len());
            }
            assert!(bytes > OBJECTS * 100, "{path} {accept}: {bytes} bytes");
        }
    });
}

#[test]
fn lists_that_are_recorded_in_the_audit_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    let config = || {
        let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitManagedFields: true, omitStages: [RequestReceived], \
                      rules: [{level: RequestResponse, verbs: [list], resources: [{group: ex.io}]}]}";
        let options =
            LogOptions { path: path.clone(), max_bytes: 100 << 20, max_backups: 0, max_age: Duration::ZERO };
        let log = Some(AuditLog::open(options).expect("a log"));
        let policy = Policy::parse(policy).expect("a policy");
        Config::in_memory().with_audit(Arc::new(Audit { policy, log, webhook: None }))
    };
    // Lists of all namespaces only wait for the definition to be served.
    let request = format!("\"requestURI\":\"{WIDGETS}\"");
    let recorded = |lists: usize| loop {
        let text = std::fs::read_to_string(&path).expect("the log");
        let mut lines = text.lines().filter(|line| line.contains(&request));
        if let Some(line) = lines.nth(lists - 1).filter(|_| text.ends_with('\n')) {
            break line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    confined_with(module_path!(), "lists_that_are_recorded_in_the_audit_log", config, |client| async move {
        define_widgets(&client).await;
        let list = async || {
            let reply = client.reply("GET", WIDGETS, &[], String::new()).await;
            assert_eq!(reply.status(), 200);
        };
        create_dense(&client, 0..15).await;
        list().await;
        let whole = recorded(1);
        assert!(whole.contains("\"w14\"") && !whole.contains("managedFields"));
        create_dense(&client, 15..OBJECTS).await;
        list().await;
        let cut = recorded(2);
        assert!(cut.len() < 10_000 && cut.contains(r#""audit.k8s.io/truncated":"true""#), "{}", cut.len());
    });
}
