//! Claims about lists.

use serde_json::json;

use super::*;
use crate::compute::{ServerGroup, ServerGroupFilter};
use crate::image::{Image, ImageFilter};
use crate::load_balancer::{LoadBalancer, LoadBalancerFilter};
use crate::network::{Network, NetworkFilter, Port, PortFilter, TagFilter};
use crate::{Class, ErrorKind};

fn paged(page_size: u32, script: &Arc<Script>) -> Client {
    script.client_of(cloud(SETTINGS), Policy { page_size, ..Policy::default() })
}

#[tokio::test(start_paused = true)]
async fn pages_follow_the_marker_of_links_and_never_the_link() {
    // The link leads to another host, as it does behind a proxy that rewrites nothing.
    let script = Script::new(|seen, _| {
        let link = |marker: &str| {
            json!([
                { "rel": "previous", "href": "http://elsewhere.example/v2.0/networks?marker=x&page_reverse=True" },
                { "rel": "next", "href": format!("http://elsewhere.example/v2.0/networks?limit=2&marker={marker}") },
            ])
        };
        match seen.query("marker") {
            None => ok(json!({ "networks": [{ "id": "1" }, { "id": "2" }], "networks_links": link("2") })),
            Some("2") => ok(json!({ "networks": [{ "id": "3" }], "networks_links": [link("x")[0]] })),
            other => panic!("marker {other:?}"),
        }
    });
    let found = paged(2, &script).list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(found.iter().map(|network| network.id.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
    for seen in script.requests() {
        assert_eq!(seen.host, "neutron.public.regionone.example");
        assert_eq!(seen.query("limit"), Some("2"));
    }
}

#[tokio::test(start_paused = true)]
async fn each_service_has_its_own_way_to_the_next_page() {
    let script = Script::new(|seen, _| {
        match (seen.path.as_str(), seen.query("marker"), seen.query("offset")) {
            ("/v2/images", None, _) => ok(
                json!({ "images": [{ "id": "1" }], "first": "/v2/images", "next": "/v2/images?limit=1&marker=1" }),
            ),
            ("/v2/images", Some("1"), _) => ok(json!({ "images": [{ "id": "2" }], "first": "/v2/images" })),
            // A full last page leads to an empty one.
            ("/v2/lbaas/loadbalancers", None, _) => {
                let next = json!([{ "rel": "next", "href": "http://o.example/v2/lbaas/loadbalancers?limit=1&marker=1" }]);
                ok(json!({ "loadbalancers": [{ "id": "1" }], "loadbalancers_links": next }))
            }
            ("/v2/lbaas/loadbalancers", Some("1"), _) => ok(
                json!({ "loadbalancers": [], "loadbalancers_links": [{ "rel": "previous", "href": "http://o.example" }] }),
            ),
            ("/v2.1/", ..) => {
                ok(json!({ "version": { "id": "v2.1", "version": "2.64", "min_version": "2.1" } }))
            }
            ("/v2.1/os-server-groups", _, None) => ok(json!({ "server_groups": [{ "id": "1" }] })),
            ("/v2.1/os-server-groups", _, Some("1")) => ok(json!({ "server_groups": [{ "id": "2" }] })),
            ("/v2.1/os-server-groups", _, Some("2")) => ok(json!({ "server_groups": [] })),
            other => panic!("{other:?}"),
        }
    });
    let client = paged(1, &script);
    assert_eq!(client.list::<Image>(&ImageFilter::default()).await.unwrap().len(), 2);
    assert_eq!(client.list::<LoadBalancer>(&LoadBalancerFilter::default()).await.unwrap().len(), 1);
    assert_eq!(client.list::<ServerGroup>(&ServerGroupFilter::default()).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_marker_was_deleted_is_read_anew() {
    let next = || json!([{ "rel": "next", "href": "http://n.example/?marker=1" }]);
    let script = Script::new(move |seen, before| match (seen.query("marker"), before) {
        (None, 0) => ok(json!({ "networks": [{ "id": "1" }], "networks_links": next() })),
        (Some("1"), 1) => neutron(404, "NetworkNotFound", "Network 1 could not be found."),
        (None, 2) => ok(json!({ "networks": [{ "id": "2" }] })),
        other => panic!("{other:?}"),
    });
    let found = paged(1, &script).list::<Network>(&NetworkFilter::default()).await.unwrap();
    assert_eq!(found[0].id.as_str(), "2");
}

#[tokio::test(start_paused = true)]
async fn links_in_a_circle_end() {
    let next = || json!([{ "rel": "next", "href": "http://n.example/?marker=1" }]);
    let script =
        Script::new(move |_, _| ok(json!({ "networks": [{ "id": "1" }], "networks_links": next() })));
    let error = paged(1, &script).list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Endless(_)));
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_the_list_is_no_empty_list() {
    let script = Script::new(|_, _| ok(json!({ "hello": [] })));
    let error = script.client().list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert_eq!(error.class(), Class::Protocol);
}

#[tokio::test(start_paused = true)]
async fn filters_are_written_as_neutron_reads_them() {
    let script = Script::new(|seen, _| ok(json!({ seen.path.trim_start_matches("/v2.0/"): [] })));
    let client = script.client();
    let tags = TagFilter {
        tags: vec!["a b".to_owned(), "c".to_owned()],
        not_tags_any: vec!["d".to_owned()],
        ..TagFilter::default()
    };
    let filter = NetworkFilter { is_external: Some(true), tags, ..NetworkFilter::default() };
    client.list::<Network>(&filter).await.unwrap();
    let query = |script: &Script| {
        let mut query = script.requests().pop().unwrap().query;
        query.retain(|(name, _)| name != "limit");
        query.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(query(&script), ["not-tags-any=d", "router:external=true", "tags=a b,c"]);
    let filter = PortFilter { device_id: vec!["x".to_owned(), "y".to_owned()], ..PortFilter::default() };
    client.list::<Port>(&filter).await.unwrap();
    assert_eq!(query(&script), ["device_id=x", "device_id=y"]);
    let comma = TagFilter { tags: vec!["a,b".to_owned()], ..TagFilter::default() };
    let error =
        client.list::<Network>(&NetworkFilter { tags: comma, ..NetworkFilter::default() }).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"network GET /networks: the request cannot be written: the tag "a,b" holds a comma"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_several_things_have_names_none() {
    let script = Script::new(|_, _| ok(json!({ "networks": [{ "id": "1" }, { "id": "2" }] })));
    let error = script.client().find_one::<Network>(&NetworkFilter::default()).await.unwrap_err();
    assert_eq!((error.class(), &*error.kind), (Class::Answer, &ErrorKind::Several(2)));
}
