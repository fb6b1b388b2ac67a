//! TokenReview and SelfSubjectReview.

use capstan_env::Env;
use serde_json::{Map, Value, json};

use super::user_info;
use crate::admission::Warnings;
use crate::auth::User;
use crate::auth::authenticator::Authenticator;
use crate::status::{Result, Status};

/// Evaluates a TokenReview.
pub fn token_review(authenticator: &Authenticator, mut review: Value) -> Result<Value> {
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let asked: Vec<String> = review["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|audience| audience.as_str().map(str::to_owned))
        .collect();
    let audiences = if asked.is_empty() { authenticator.tokens().audiences().to_vec() } else { asked };

    let mut status = Map::new();
    match authenticator.check_token(&token, &audiences, &Warnings::default()) {
        Ok(identity) if identity.audiences.is_empty() => {
            return Err(Status::internal("error validating audiences"));
        }
        Ok(identity) => {
            status.insert("authenticated".into(), true.into());
            status.insert("user".into(), user_info(&identity.user));
            status.insert("audiences".into(), identity.audiences.into());
        }
        Err(error) => {
            status.insert("user".into(), json!({}));
            status.insert("error".into(), error.into());
        }
    }
    review["status"] = Value::Object(status);
    Ok(review)
}

/// Evaluates a SelfSubjectReview.
pub fn self_subject_review(env: &Env, user: &User, api_version: &str) -> Value {
    json!({
        "kind": "SelfSubjectReview", "apiVersion": api_version,
        "metadata": {"creationTimestamp": env.now_rfc3339()},
        "status": {"userInfo": user_info(user)},
    })
}
