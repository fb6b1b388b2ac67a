//! Lists of many objects that would expand to gigabytes.

use http_body_util::BodyExt;

use super::bodies::{WIDGETS, define_widgets, repeated, widget};
use super::confined;

/// Objects that take 55 MiB each when they are decoded: together more than the process may have.
const OBJECTS: usize = 20;

#[test]
fn lists_that_are_not_sent_as_they_are_stored() {
    confined(module_path!(), "lists_that_are_not_sent_as_they_are_stored", |client| async move {
        define_widgets(&client).await;
        let dense = format!("\"any\":{{\"l\":[{}]}}", repeated(r#"{"":0}"#, 600_000));
        for n in 0..OBJECTS {
            let body = widget(&dense).replace(r#""name":"a"},"spec""#, &format!(r#""name":"w{n}"}},"spec""#));
            let reply = client.reply("POST", WIDGETS, &[("content-type", "application/json")], body).await;
            assert_eq!(reply.status(), 201);
        }
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
