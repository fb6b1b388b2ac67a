//! Signatures, wrappers, error bodies, paging.

use http::Method;

use crate::world::{World, is_ok, read};

#[tokio::test]
async fn a_signed_request_is_answered_under_the_commands_name() {
    let world = World::new();
    let answer = world.get("alice", "listZones", &[]).await;
    assert_eq!((answer.status, answer.wrapper.as_str()), (200, "listzonesresponse"));
    assert_eq!(answer.body["count"], 1);
    assert_eq!(answer.body["zone"][0]["name"], "zone-1");
}

#[tokio::test]
async fn whoever_cannot_be_verified_gets_401_without_an_exception_code() {
    let world = World::new();
    let keys = world.simulator.credentials("alice").unwrap();
    for query in [
        world.query_with(&keys.api_key, "wrong", "listZones", &[]),
        world.query_with("nobody", &keys.secret_key, "listZones", &[]),
        format!("command=listZones&response=json&apiKey={}", keys.api_key),
        "command=listZones&response=json".to_owned(),
    ] {
        let answer = read(world.send(Method::GET, &query, "").await.unwrap());
        assert_eq!(answer.code(), (401, None), "{query}");
        assert_eq!(answer.wrapper, "listzonesresponse");
    }
}

#[tokio::test]
async fn version_3_signatures_need_an_expiry_that_is_not_past() {
    let world = World::new();
    let later =
        (world.now() + jiff::SignedDuration::from_mins(10)).strftime("%Y-%m-%dT%H:%M:%S+0000").to_string();
    let earlier =
        (world.now() - jiff::SignedDuration::from_mins(1)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (expires, status) in
        [(Some(later.as_str()), 200), (Some(&earlier), 401), (Some("soon"), 401), (None, 401)]
    {
        let mut parameters = vec![("signatureVersion", "3")];
        parameters.extend(expires.map(|expires| ("expires", expires)));
        assert_eq!(world.get("alice", "listZones", &parameters).await.status, status, "{expires:?}");
    }
}

#[tokio::test]
async fn an_unknown_command_is_401_by_key_and_432_by_session() {
    let world = World::new();
    let answer = world.get("alice", "noSuchCommand", &[]).await;
    assert_eq!((answer.code(), answer.wrapper.as_str()), ((401, None), "errorresponse"));
    let form = "command=login&response=json&username=alice&password=alice-password&domain=/dom1";
    let login = world.send(Method::POST, "", form).await.unwrap();
    assert!(is_ok(&login));
    let cookies: Vec<_> = login
        .headers()
        .get_all("set-cookie")
        .iter()
        .filter_map(|value| value.to_str().ok()?.split(';').next().map(str::to_owned))
        .collect();
    let key = cookies.iter().find_map(|cookie| cookie.strip_prefix("sessionkey=")).unwrap();
    let ask = async |command: &str, key: &str| {
        let request = http::Request::builder()
            .uri(format!("/client/api?command={command}&response=json&sessionkey={key}"))
            .header("cookie", cookies.join("; "))
            .body(bytes::Bytes::new())
            .unwrap();
        read(world.simulator.call(request).await.unwrap())
    };
    let answer = ask("noSuchCommand", key).await;
    assert_eq!((answer.code(), answer.wrapper.as_str()), ((432, Some(9999)), "errorresponse"));
    assert_eq!(ask("listZones", key).await.status, 200);
    // A wrong key ends the session.
    assert_eq!(ask("listZones", "wrong").await.code(), (401, None));
    assert_eq!(ask("listZones", key).await.code(), (401, None));
}

#[tokio::test]
async fn the_stock_role_user_lacks_what_admins_have() {
    let world = World::new();
    for (account, command, status) in [
        ("alice", "listDomains", 432),
        ("dadmin", "listDomains", 200),
        ("dadmin", "listHosts", 432),
        ("admin", "listHosts", 200),
        ("alice", "listCapacity", 432),
    ] {
        assert_eq!(world.get(account, command, &[]).await.status, status, "{account} {command}");
    }
}

#[tokio::test]
async fn parameters_that_are_missing_or_name_nothing_are_431() {
    let world = World::new();
    let missing = world.get("alice", "createNetwork", &[("name", "x")]).await;
    assert_eq!(missing.code(), (431, Some(9999)));
    assert!(missing.text().contains("due to missing parameter"), "{missing:?}");
    let nobody = "00000000-0000-0000-0000-000000000000";
    let unknown = world.get("alice", "listVirtualMachines", &[("id", nobody)]).await;
    assert_eq!(unknown.code(), (431, Some(9999)));
    assert!(unknown.text().contains(&format!("Invalid parameter id value={nobody}")), "{unknown:?}");
    let word = world.get("alice", "listZones", &[("page", "x"), ("pagesize", "1")]).await;
    assert_eq!(word.code(), (431, Some(9999)));
}

#[tokio::test]
async fn an_empty_list_is_an_empty_object_and_a_page_beyond_the_last_has_only_a_count() {
    let world = World::new();
    assert_eq!(world.get("alice", "listVirtualMachines", &[]).await.body, serde_json::json!({}));
    let all = world.get("alice", "listOsTypes", &[]).await.body["count"].as_u64().unwrap();
    let page = world.get("alice", "listOsTypes", &[("page", "1"), ("pagesize", "2")]).await.body;
    assert_eq!((page["count"].as_u64(), page["ostype"].as_array().map(Vec::len)), (Some(all), Some(2)));
    let beyond = world.get("alice", "listOsTypes", &[("page", "99"), ("pagesize", "2")]).await.body;
    assert_eq!(beyond, serde_json::json!({"count": all}));
    assert_eq!(world.get("alice", "listOsTypes", &[("page", "1")]).await.code(), (431, Some(9999)));
}

#[tokio::test]
async fn the_web_server_in_front_answers_what_it_answers() {
    let world = World::new();
    let call = |method: Method, path: String| {
        let request = http::Request::builder().method(method).uri(path).body(bytes::Bytes::new()).unwrap();
        let simulator = world.simulator.clone();
        async move { simulator.call(request).await.unwrap().status().as_u16() }
    };
    assert_eq!(call(Method::PUT, "/client/api".to_owned()).await, 405);
    assert_eq!(call(Method::GET, "/client/apix".to_owned()).await, 404);
    assert_eq!(call(Method::GET, "/".to_owned()).await, 301);
    assert_eq!(call(Method::GET, format!("/client/api?x={}", "y".repeat(9000))).await, 414);
    let query = "command=login&response=json&username=alice";
    assert_eq!(call(Method::GET, format!("/client/api?{query}")).await, 405);
}

#[tokio::test]
async fn one_seed_gives_one_conversation() {
    let mut conversations = Vec::new();
    for _ in 0..2 {
        let world = World::new();
        let network = world.network("alice", "net1").await;
        let vm = world.machine("alice", &network, "vm1").await;
        conversations.push((
            world.get("alice", "listVirtualMachines", &[("id", &vm)]).await,
            world.get("alice", "listPublicIpAddresses", &[]).await,
        ));
    }
    assert_eq!(conversations[0], conversations[1]);
}
