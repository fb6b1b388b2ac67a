//! Maintains Secrets of type `kubernetes.io/service-account-token`: adds their token, and deletes them with their
//! ServiceAccount.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::keyed::{Keyed, Progress};
use crate::auth::TokenSecret;
use crate::auth::bucket::{SECRETS, SERVICE_ACCOUNTS};
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::status::{Result, Status};
use crate::verbs::delete::delete_object;

const USER: &str = "system:kube-controller-manager";

/// The buckets that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    matches!(bucket, SECRETS | SERVICE_ACCOUNTS)
}

pub(crate) struct TokenSecrets;

impl Keyed for TokenSecrets {
    const WORK: &'static str = "reconciling a token Secret";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        holding_tokens(parts, "").collect()
    }

    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        match (&*change.bucket, change.gone) {
            (SECRETS, false) => {
                dirty.insert(change.key.to_string());
            }
            (SERVICE_ACCOUNTS, true) => {
                let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
                dirty.extend(holding_tokens(parts, &format!("{namespace}/")));
            }
            _ => {}
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, key: &str) -> Result<Progress> {
        reconcile_secret(parts, key).await?;
        Ok(Progress::Done)
    }
}

/// Keys with a prefix whose Secrets request a token.
fn holding_tokens(parts: &ServerParts, prefix: &str) -> impl Iterator<Item = String> {
    let snapshot = parts.store.snapshot(SECRETS);
    let keys: Vec<String> = snapshot
        .range(prefix, None)
        .filter(|entry| holds_token(&entry.value))
        .map(|entry| entry.key.to_string())
        .collect();
    keys.into_iter()
}

/// Whether a stored Secret has the type. Does not decode the rest.
fn holds_token(secret: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        r#type: String,
    }
    serde_json::from_slice::<Head>(secret).is_ok_and(|head| head.r#type == TokenSecret::TYPE)
}

async fn reconcile_secret(parts: &Arc<ServerParts>, key: &str) -> Result<()> {
    let Some(entry) = parts.store.get(SECRETS, key).filter(|entry| holds_token(&entry.value)) else {
        return Ok(());
    };
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("", "v1", "secrets") else { return Ok(()) };
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let call = parts.internal_call(USER, resource.clone(), namespace, name);
    let secret = call.load(&entry).await?;
    let outcome = match complete(parts, &secret)? {
        TokenSecret::Unchanged => return Ok(()),
        TokenSecret::Store(_) => {
            change(&call, &Completed, &WriteOptions::default(), WriteKind::Update).await.map(|_| ())
        }
        TokenSecret::Delete => {
            let options = DeleteOptions { uid: Some(secret.uid().to_owned()), ..DeleteOptions::default() };
            delete_object(&call, key, &options).await.map(|_| ())
        }
    };
    match outcome {
        // Deleted or replaced meanwhile, which is a change of its own.
        Err(status) if !matches!(&*status.reason, "NotFound" | "Conflict") => Err(status),
        _ => Ok(()),
    }
}

fn complete(parts: &ServerParts, secret: &Value) -> Result<TokenSecret> {
    parts.authenticator.tokens().complete_secret(secret).map_err(Status::internal)
}

/// A Secret with its token.
struct Completed;

impl Change for Completed {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        Ok(match complete(&call.parts, current)? {
            TokenSecret::Store(object) => Step::Write { object, manager: call.manager("") },
            TokenSecret::Unchanged | TokenSecret::Delete => Step::Edit(current.clone()),
        })
    }
}
