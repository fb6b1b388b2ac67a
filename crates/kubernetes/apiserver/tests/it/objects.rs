//! Verbs on a built-in kind.

use serde_json::{Value, json};

use crate::client::Client;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let client = Client::start().await;
    let (code, created) = client.create(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["metadata"]["namespace"], "default");
    assert!(created["metadata"]["uid"].is_string() && created["metadata"]["managedFields"].is_array());

    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(client.get(&path).await, (200, created.clone()));
    let patch = json!({"data": {"b": "2"}});
    let (code, patched) = client.patch(&path, "application/merge-patch+json", &patch).await;
    assert_eq!((code, &patched["data"]), (200, &json!({"a": "1", "b": "2"})));

    let mut stale = created;
    stale["data"]["a"] = "3".into();
    let (code, refused) = client.call("PUT", &path, &stale).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")));

    let (code, status) = client.delete(&path).await;
    assert_eq!((code, &status["status"]), (200, &json!("Success")));
    assert_eq!(client.get(&path).await.0, 404);
}

#[tokio::test]
async fn mistakes_get_a_status_that_names_them() {
    let client = Client::start().await;
    let cases = [
        (config_map("Not_A_Name"), 422, "Invalid"),
        (json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}), 400, "BadRequest"),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": 1}),
            400,
            "BadRequest",
        ),
        (json!([]), 400, "BadRequest"),
    ];
    for (body, code, reason) in cases {
        let (got, status) = client.create(CONFIG_MAPS, &body).await;
        assert_eq!((got, status["reason"].as_str()), (code, Some(reason)), "{body} gave {status}");
    }
    let (code, status) = client.create("/api/v1/namespaces/nowhere/configmaps", &config_map("a")).await;
    assert_eq!((code, status["message"].as_str()), (404, Some("namespaces \"nowhere\" not found")));
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_with_413() {
    let client = Client::start().await;
    let mut big = config_map("big");
    big["data"]["a"] = "x".repeat(3 * 1024 * 1024).into();
    let (code, status) = client.create(CONFIG_MAPS, &big).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/big")).await.0, 404);
}

#[tokio::test]
async fn pages_show_one_moment_whatever_happens_in_between() {
    let client = Client::start().await;
    for i in 0..5 {
        client.create(CONFIG_MAPS, &config_map(&format!("p{i}"))).await;
    }
    let (_, first) =
        client.get(&format!("{CONFIG_MAPS}?limit=2&fieldSelector=metadata.name!=kube-root-ca.crt")).await;
    let token = first["metadata"]["continue"].as_str().expect("more to come").to_owned();
    client.delete(&format!("{CONFIG_MAPS}/p3")).await;
    client.create(CONFIG_MAPS, &config_map("p9")).await;
    let rest =
        format!("{CONFIG_MAPS}?limit=10&continue={token}&fieldSelector=metadata.name!=kube-root-ca.crt");
    let (code, second) = client.get(&rest).await;
    assert_eq!(code, 200, "{second}");
    let names: Vec<&str> = [&first, &second]
        .iter()
        .flat_map(|page| page["items"].as_array().into_iter().flatten())
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn an_apply_that_touches_anothers_field_conflicts_until_forced() {
    let client = Client::start().await;
    let apply = |manager: &str, value: &str, force: &str| {
        let path = format!("{CONFIG_MAPS}/s?fieldManager={manager}{force}");
        let mut object = config_map("s");
        object["data"]["a"] = value.into();
        (path, object)
    };
    let kind = "application/apply-patch+yaml";
    let (path, object) = apply("one", "1", "");
    assert_eq!(client.patch(&path, kind, &object).await.0, 201);
    let (path, object) = apply("two", "2", "");
    let (code, status) = client.patch(&path, kind, &object).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (409, &json!(".data.a")));
    let (path, object) = apply("two", "2", "&force=true");
    assert_eq!(client.patch(&path, kind, &object).await.1["data"]["a"], "2");
}

#[tokio::test]
async fn a_dry_run_answers_but_stores_nothing() {
    let client = Client::start().await;
    let (code, created) = client.create(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("dry")).await;
    assert_eq!((code, &created["metadata"]["name"]), (201, &json!("dry")));
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/dry")).await.0, 404);
}

#[tokio::test]
async fn servers_in_one_process_do_not_see_each_other() {
    let (one, two) = (Client::start().await, Client::start().await);
    one.create(CONFIG_MAPS, &config_map("mine")).await;
    assert_eq!(two.get(&format!("{CONFIG_MAPS}/mine")).await.0, 404);
}
