//! Secrets that hold the token of a ServiceAccount.

use capstan_apiserver::auth::User;
use serde_json::{Value, json};

use crate::client::{Client, read};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn secret(name: &str, account: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
    })
}

#[tokio::test]
async fn a_secret_that_requests_a_token_gets_it_and_is_deleted_with_its_account() {
    let client = Client::start().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let (_, account) = client.create(ACCOUNTS, &account).await;
    client.create(SECRETS, &secret("robot-token", "robot")).await;
    let path = format!("{SECRETS}/robot-token");
    let (_, complete) = client.until(&path, |(_, secret)| secret["data"]["token"].is_string()).await;
    assert_eq!(
        complete["metadata"]["annotations"]["kubernetes.io/service-account.uid"],
        account["metadata"]["uid"]
    );
    for field in ["ca.crt", "namespace"] {
        assert!(complete["data"][field].is_string(), "{field} in {complete}");
    }

    let token = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        complete["data"]["token"].as_str().expect("a token"),
    );
    let token = String::from_utf8(token.expect("base64")).expect("a text");
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let (_, review) = client.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:robot", "{review}");

    client.delete(&format!("{ACCOUNTS}/robot")).await;
    client.until(&path, |(code, _)| *code == 404).await;
}

#[tokio::test]
async fn a_secret_for_an_account_that_is_not_there_is_deleted_and_others_are_left_alone() {
    let client = Client::start().await;
    let plain = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain"}});
    client.create(SECRETS, &plain).await;
    client.create(SECRETS, &secret("lost", "nobody")).await;
    client.until(&format!("{SECRETS}/lost"), |(code, _)| *code == 404).await;
    assert_eq!(client.get(&format!("{SECRETS}/plain")).await.0, 200);
}

#[tokio::test]
async fn verifiers_find_the_issuer_and_its_keys() {
    let client = Client::start().await;
    let headers = [("host", "plane.example:6443")];
    let reply = client.reply("GET", "/.well-known/openid-configuration", &headers, String::new()).await;
    let (code, configuration) = read(reply).await;
    assert_eq!(code, 200);
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc");
    assert_eq!(configuration["jwks_uri"], "https://plane.example:6443/openid/v1/jwks");

    let reply = client.reply("GET", "/openid/v1/jwks", &[], String::new()).await;
    assert_eq!(reply.headers()["content-type"], "application/jwk-set+json");
    assert_eq!(reply.headers()["cache-control"], "public, max-age=3600");
    let (_, keys) = read(reply).await;
    assert_eq!(keys["keys"][0]["use"], "sig");

    let stranger = client.as_user(User::anonymous());
    assert_eq!(stranger.get("/openid/v1/jwks").await.0, 403);
    let account = User::new("system:serviceaccount:a:b", ["system:serviceaccounts", "system:authenticated"]);
    assert_eq!(client.as_user(account).get("/openid/v1/jwks").await.0, 200);
}
