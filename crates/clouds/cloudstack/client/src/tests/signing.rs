use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::{API_KEY, Reply, Script};
use crate::commands::{
    CreateTags, DeployVirtualMachine, ListVirtualMachines, ListZones, NetworkAddress, TagPair,
};
use crate::model::ResourceType;
use crate::sign::{canonical, signature};
use crate::{Credentials, UserData, flatten};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_example_of_the_developers_guide_gives_its_signature() {
    let parameters = pairs(&[
        ("command", "listUsers"),
        ("response", "json"),
        ("apikey", "plgWJfZK4gyS3mOMTVmjUVg-X-jlWlnfaUJ9GAbBbf9EdM-kAYMmAiLqzzq1ElZLYq_u38zCm0bewzGUdP66mg"),
    ]);
    let secret = "VDaACYb0LV9eNjTetIOElcVQkvJck_J_QljX_FcHRj87ZKiy0z0ty0ZsYBkoXkY9b7eq1EhwJaw7FF3akA3KBQ";
    assert_eq!(signature(&parameters, secret), "TTpdDq/7j/J58XCRHomKoQXEQds=");
}

/// Computed with Python's hmac and urllib.
#[test]
fn signatures_agree_with_those_computed_elsewhere() {
    let deploy = pairs(&[
        ("apiKey", "test-key"),
        ("command", "deployVirtualMachine"),
        ("details[0].memory", "4096"),
        ("expires", "2026-01-01T00:15:00Z"),
        ("name", "A b+c*d~e/f"),
        ("response", "json"),
        ("signatureversion", "3"),
        ("zoneid", "z1"),
    ]);
    assert_eq!(
        canonical(&deploy),
        "apikey=test-key&command=deployvirtualmachine&details[0].memory=4096&expires=2026-01-01t00%3a15%3a00z\
         &name=a%20b%2bc*d%7ee%2ff&response=json&signatureversion=3&zoneid=z1"
    );
    assert_eq!(signature(&deploy, "test-secret"), "GfTCL8ij7CKXo0PjlKd5ueHOqXQ=");
    let tags = pairs(&[
        ("apiKey", "k"),
        ("command", "createTags"),
        ("tags[0].key", "Ünïcode"),
        ("tags[0].value", "a=b&c,d[0](e)!'\""),
        ("ID", "x"),
        ("resourceids", "1,2"),
    ]);
    assert!(canonical(&tags).starts_with("id=x&apikey=k&"), "capitals sort before small letters");
    assert_eq!(signature(&tags, "s3cr3t/+="), "Z9Vg5av38CFdaf9UlSKzHWpl2Fo=");
}

#[tokio::test]
async fn every_request_is_signed_as_the_server_checks_it() {
    let script = Script::new(|_, _| Reply::Ok(json!({ "jobid": "j", "id": "v" })));
    let client = script.client();
    let mut deploy = DeployVirtualMachine::new("z".into(), "o".into(), "t".into());
    deploy.name = Some("a b~c*d".to_owned());
    deploy.details =
        BTreeMap::from([("rootdisksize".into(), "20".into()), ("Cpu.Number".into(), "2".into())]);
    deploy.userdata = Some(UserData::plain(b"#cloud-config\n").unwrap());
    deploy.iptonetworklist = vec![NetworkAddress { networkid: "n".into(), ip: Some([10, 0, 0, 9].into()) }];
    client.start(&deploy).await.unwrap();
    let seen = script.seen();
    assert_eq!(seen[0].get("details[0].Cpu.Number"), "2");
    assert_eq!(seen[0].get("iptonetworklist[0].ip"), "10.0.0.9");
    assert_eq!(seen[0].get("name"), "a b~c*d");
    assert_eq!(seen[0].get("signatureversion"), "3");
    assert_eq!(seen[0].get("response"), "json");
    assert_eq!(seen[0].key, API_KEY);
}

#[tokio::test]
async fn a_signature_holds_for_ten_minutes_so_that_a_clock_may_be_five_ahead() {
    let script = Script::new(|_, _| Reply::Ok(json!({})));
    script.client().list(&ListZones::default()).await.unwrap();
    // The script's clock says 00:05; servers that insist on times take at most 15 minutes.
    assert_eq!(script.seen()[0].get("expires"), "2026-01-01T00:15:00Z");
}

#[tokio::test]
async fn what_changes_something_or_is_long_goes_by_post_and_the_rest_by_get() {
    let script = Script::new(|_, _| Reply::Ok(json!({ "jobid": "j" })));
    let client = script.client();
    let tags = vec![TagPair::new("k", "v")];
    let tag = CreateTags { resourceids: vec!["r".into()], resourcetype: ResourceType::UserVm, tags };
    client.start(&tag).await.unwrap();
    client.list(&ListZones::default()).await.unwrap();
    let ids = (0..200).map(|n| format!("00000000-0000-0000-0000-{n:012}").as_str().into()).collect();
    client.list(&ListVirtualMachines { ids, ..Default::default() }).await.unwrap();
    let methods: Vec<String> = script.seen().iter().map(|seen| seen.method.to_string()).collect();
    assert_eq!(methods, ["POST", "GET", "POST"]);
}

#[tokio::test]
async fn replaced_keys_sign_the_next_request() {
    let script = Script::new(|_, _| Reply::Ok(json!({})));
    let (client, keys) = script.rotating();
    client.list(&ListZones::default()).await.unwrap();
    keys.replace(Credentials::new("the-api-key-of-bob", "the-secret-key-of-bob"));
    client.list(&ListZones::default()).await.unwrap();
    let signers: Vec<String> = script.seen().into_iter().map(|seen| seen.key).collect();
    assert_eq!(signers, ["the-api-key-of-alice", "the-api-key-of-bob"]);
}

#[test]
fn structure_becomes_flat_names() {
    #[derive(Serialize, Default)]
    struct Everything {
        text: Option<&'static str>,
        empty: &'static str,
        number: Option<i64>,
        truth: Option<bool>,
        ids: Vec<&'static str>,
        none: Vec<&'static str>,
        tags: Vec<TagPair>,
        map: BTreeMap<&'static str, &'static str>,
    }
    let everything = Everything {
        text: Some("t"),
        number: Some(-1),
        truth: Some(false),
        ids: vec!["a", "b"],
        tags: vec![TagPair::new("k", "v"), TagPair::new("l", "w")],
        map: BTreeMap::from([("x", "1"), ("y", "2")]),
        ..Everything::default()
    };
    let mut flat = flatten(&everything).unwrap();
    flat.sort();
    let expected = pairs(&[
        ("ids", "a,b"),
        ("map[0].x", "1"),
        ("map[1].y", "2"),
        ("number", "-1"),
        ("tags[0].key", "k"),
        ("tags[0].value", "v"),
        ("tags[1].key", "l"),
        ("tags[1].value", "w"),
        ("text", "t"),
        ("truth", "false"),
    ]);
    assert_eq!(flat, expected);
    let comma = Everything { ids: vec!["a,b"], ..Everything::default() };
    assert!(flatten(&comma).is_err(), "the server would take it for two");
}
