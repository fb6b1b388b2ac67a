//! Claims about secrets.

use serde_json::json;

use super::*;
use crate::Secret;
use crate::compute::{Keypair, NewServer};
use crate::identity::{ApplicationCredential, NewApplicationCredential};
use crate::network::{Network, NetworkFilter};

#[tokio::test(start_paused = true)]
async fn a_service_that_repeats_secrets_spreads_none() {
    let script = Script::new(|seen, _| {
        let text = format!("no {} for {}", PASSWORD, seen.header("x-auth-token"));
        neutron(400, "BadRequest", &text)
    });
    let client = script.client();
    let error = client.list::<Network>(&NetworkFilter::default()).await.unwrap_err();
    let shown = format!("{error} {error:?} {client:?} {:?}", client.token().await.unwrap());
    assert!(!shown.contains(PASSWORD) && !shown.contains("token-0"), "{shown}");
    assert!(error.to_string().contains("no [redacted] for [redacted]"));
    // Keystone may repeat what it was sent.
    let script = Script::new(|_, _| Reply::Never);
    script
        .keystone_says(vec![Reply::Json(400, json!({ "error": { "message": format!("bad {PASSWORD}") } }))]);
    let error = script.client().token().await.unwrap_err();
    assert_eq!(error.to_string(), "identity POST /auth/tokens: HTTP 400: bad [redacted]");
}

#[tokio::test(start_paused = true)]
async fn secrets_of_answers_and_requests_do_not_print() {
    let script = Script::new(|_, _| {
        Reply::Json(
            201,
            json!({ "application_credential": { "id": "i", "name": "n", "secret": "once-only" } }),
        )
    });
    let new = NewApplicationCredential { name: "n".to_owned(), ..NewApplicationCredential::default() };
    let made: ApplicationCredential = script.client().create_application_credential(&new).await.unwrap();
    assert_eq!(made.secret.as_ref().unwrap().expose(), "once-only");
    let keypair: Keypair =
        serde_json::from_value(json!({ "name": "k", "private_key": "once-only" })).unwrap();
    let server = NewServer { user_data: Some(Secret::new("once-only")), ..NewServer::default() };
    let shown = format!("{made:?} {keypair:?} {server:?}");
    assert!(!shown.contains("once-only"), "{shown}");
    let request = script.requests().pop().unwrap();
    assert_eq!(
        (request.host.as_str(), request.path.as_str()),
        ("keystone.example", "/v3/users/u1/application_credentials")
    );
}
