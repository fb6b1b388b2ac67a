use serde_json::{Value, json};

use super::{Reply, Script, Seen};
use crate::commands::{ListNetworks, ListZones, Owner, Scope};
use crate::{ErrorKind, Policy};

fn page(seen: &Seen, count: usize) -> Reply {
    let (page, size): (usize, usize) =
        (seen.get("page").parse().unwrap(), seen.get("pagesize").parse().unwrap());
    let from = (page - 1) * size;
    if from >= count {
        return Reply::Ok(json!({ "count": count }));
    }
    let zones: Vec<Value> =
        (from..count.min(from + size)).map(|n| json!({ "id": n.to_string(), "name": "z" })).collect();
    Reply::Ok(json!({ "count": count, "zone": zones }))
}

fn small_pages() -> Policy {
    Policy { page_size: 10, ..Policy::default() }
}

#[tokio::test]
async fn all_pages_are_read_and_no_more() {
    for (count, requests) in [(0, 1), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (25, 3)] {
        let script = Script::new(move |seen, _| page(seen, count));
        let zones = script.client_with(small_pages()).list(&ListZones::default()).await.unwrap();
        assert_eq!((zones.len(), script.seen().len()), (count, requests), "{count}");
        let distinct: std::collections::BTreeSet<_> = zones.into_iter().map(|zone| zone.id).collect();
        assert_eq!(distinct.len(), count);
    }
}

#[tokio::test]
async fn an_empty_list_is_an_empty_object() {
    let script = Script::new(|_, _| Reply::Ok(json!({})));
    assert_eq!(script.client().list(&ListZones::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_list_that_changed_between_its_pages_is_read_anew() {
    // One is deleted after the first page: what was entry 10 would be missed.
    let script = Script::new(|seen, before| page(seen, if before == 0 { 15 } else { 14 }));
    let zones = script.client_with(small_pages()).list(&ListZones::default()).await.unwrap();
    assert_eq!((zones.len(), script.seen().len()), (14, 4));
}

#[tokio::test]
async fn a_list_that_never_holds_still_is_an_error_and_no_half_truth() {
    let script = Script::new(|seen, before| page(seen, 15 + before));
    let error = script.client_with(small_pages()).list(&ListZones::default()).await.unwrap_err();
    assert_eq!(*error.kind, ErrorKind::Unsettled);
    assert!(error.is_retryable() && !error.is_ambiguous());
}

#[tokio::test]
async fn one_thing_is_found_or_none_and_several_are_an_error() {
    for count in 0..3 {
        let script = Script::new(move |seen, _| page(seen, count));
        let found = script.client().find(&ListZones::default()).await;
        match count {
            0 => assert_eq!(found.unwrap(), None),
            1 => assert_eq!(found.unwrap().unwrap().id.as_str(), "0"),
            _ => assert_eq!(*found.unwrap_err().kind, ErrorKind::Several(2)),
        }
    }
}

#[tokio::test]
async fn lists_are_of_whom_the_scope_names() {
    let script = Script::new(|_, _| Reply::Ok(json!({})));
    let client = script.client();
    for scope in [
        Scope::default(),
        Scope::all(),
        Scope::of(Owner::project("p".into())),
        Scope::of(Owner::account("bob", "d".into())),
    ] {
        client.list(&ListNetworks { scope, ..Default::default() }).await.unwrap();
    }
    let sent: Vec<String> = script
        .seen()
        .iter()
        .map(|seen| {
            let names = ["account", "domainid", "projectid", "listall"];
            names.map(|name| seen.get(name).to_owned()).join("|")
        })
        .collect();
    assert_eq!(sent, ["|||", "|||true", "||p|", "bob|d||"]);
}

#[tokio::test]
async fn an_answer_of_countless_empty_objects_is_refused_before_it_is_read() {
    let script = Script::new(|_, _| Reply::Ok(json!({ "count": 1, "zone": vec![json!({}); 200_001] })));
    let error = script.client().list(&ListZones::default()).await.unwrap_err();
    let ErrorKind::Unreadable { why, .. } = &*error.kind else { panic!("{error}") };
    assert!(why.starts_with("it holds too many objects"), "{why}");
}

#[tokio::test]
async fn a_list_whose_pages_do_not_end_is_given_up_by_its_size() {
    let name = "z".repeat(8 << 20);
    let script = Script::new(move |_, _| {
        let mut zones = vec![json!({ "id": "1", "name": "z" }); 9];
        zones.push(json!({ "id": "1", "name": name }));
        Reply::Ok(json!({ "count": 1_000_000, "zone": zones }))
    });
    let error = script.client_with(small_pages()).list(&ListZones::default()).await.unwrap_err();
    let ErrorKind::Unreadable { why, .. } = &*error.kind else { panic!("{error}") };
    assert!(why.starts_with("the list is longer than"), "{why}");
    assert!(script.seen().len() <= 33, "{}", script.seen().len());
}
