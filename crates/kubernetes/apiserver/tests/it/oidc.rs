//! Tokens of an OpenID Connect issuer that does not answer.

use std::sync::Arc;

use capstan_apiserver::Config;
use capstan_apiserver::auth::User;
use capstan_oidc::Oidc;
use serde_json::json;

use crate::client::Client;

#[tokio::test]
async fn a_token_whose_issuer_cannot_be_reached_is_refused_and_others_still_work() {
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": "https://127.0.0.1:1", "audiences": ["capstan"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }],
    });
    let oidc = Arc::new(Oidc::parse(&config.to_string()).expect("a configuration"));
    let client = Client::with(Config::in_memory().with_oidc(oidc)).await;
    // {"alg":"ES256"}.{"iss":"https://127.0.0.1:1"}.
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovLzEyNy4wLjAuMToxIn0.AA";
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let (code, answer) = client.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!((code, &answer["status"]["authenticated"]), (201, &json!(null)), "{answer}");
    let error = answer["status"]["error"].as_str().expect("an error");
    assert!(error.contains("oidc: failed to verify the signature"), "{error}");
    let somebody = client.as_user(User::privileged("admin"));
    assert_eq!(somebody.get("/api/v1/namespaces").await.0, 200);
}
