//! Bootstrap tokens: created in the workload cluster and extended until the machine has joined.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_controller::{Call, KindName, ObserveError, Outcome, Patch, View};
use capstan_object::{Key, ObjectMeta, Time};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::code;
use crate::bootstrap_data;
use crate::certificates::Seed;
use capstan_capi_core::secret::Secret;

const NAMESPACE: &str = "kube-system";
const EXPIRATION: &str = "expiration";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";

/// State of the token in the workload cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenState {
    /// No token is needed, or the spec names none yet.
    NotNeeded,
    Missing,
    /// `expires` is `None` for a token without expiration.
    Found {
        expires: Option<Timestamp>,
    },
}

/// Creates a token or extends it. The token itself is in the spec of the KubeadmConfig, not in the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenCall {
    /// Namespace of the cluster.
    pub namespace: String,
    pub cluster: String,
    /// The public part of the token.
    pub id: String,
    pub expires: Time,
}

impl Call for TokenCall {
    fn idempotency_key(&self) -> String {
        format!("{}/{}/bootstrap-token-{}", self.namespace, self.cluster, self.id)
    }

    /// The Secret's name derives from the token, so a repeated call finds it.
    fn journalled(&self) -> bool {
        false
    }

    fn summary(&self) -> String {
        format!("extend bootstrap token {} of cluster {} to {}", self.id, self.cluster, self.expires)
    }
}

/// Format: `abcdef.0123456789abcdef`. `replaced` is the id of the token that it takes the place of, if any.
pub(super) fn generate(seed: &Seed, replaced: &str) -> String {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let seed = seed.derive("bootstrap-token");
    let seed = if replaced.is_empty() { seed } else { seed.derive(replaced) };
    let mut stream = seed.stream();
    let mut characters = std::iter::repeat_with(|| {
        // Rejecting the remainder avoids a bias towards the first letters of the alphabet.
        loop {
            let mut byte = [0];
            stream.fill(&mut byte);
            if byte[0] < 252 {
                return char::from(ALPHABET[usize::from(byte[0]) % ALPHABET.len()]);
            }
        }
    });
    let id: String = characters.by_ref().take(6).collect();
    let secret: String = characters.take(16).collect();
    format!("{id}.{secret}")
}

/// Splits a token into its id and its secret; `None` if malformed.
pub(super) fn halves(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fits = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (fits(id, 6) && fits(secret, 16)).then_some((id, secret))
}

/// How often a token's expiration is checked.
pub(super) fn interval(ttl: Duration) -> Duration {
    ttl / 3
}

/// Due for extension when less than five sixths of the lifetime are left.
pub(super) fn is_due(expires: Timestamp, ttl: Duration, now: Timestamp) -> bool {
    let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    left <= ttl * 5 / 6
}

/// Less than half of the lifetime is left: the token of a pool is replaced.
pub(super) fn is_half_spent(expires: Timestamp, ttl: Duration, now: Timestamp) -> bool {
    Duration::try_from(expires.duration_since(now)).unwrap_or_default() < ttl / 2
}

fn secret_key(id: &str) -> Key {
    Key::new(NAMESPACE, format!("bootstrap-token-{id}"))
}

pub(super) async fn observe(
    config: &KubeadmConfig,
    cluster: &Key,
    view: &View,
) -> Result<TokenState, ObserveError> {
    let join = &config.spec.join_configuration;
    let Some((id, _)) =
        bootstrap_data::token(join).filter(|_| bootstrap_data::uses_token(join)).and_then(halves)
    else {
        return Ok(TokenState::NotNeeded);
    };
    let Some(workloads) = view.workloads() else { return Ok(TokenState::Missing) };
    let client = workloads.client(cluster).await?;
    let Some(secret) = client.get::<Secret>(&secret_key(id)).await? else { return Ok(TokenState::Missing) };
    let expires = secret.text(EXPIRATION).ok().and_then(|text| text.parse().ok());
    Ok(TokenState::Found { expires })
}

/// Creates the Secret of a token, or updates its expiration.
pub(super) async fn make(call: &TokenCall, config: &Arc<KubeadmConfig>, view: &View) -> Outcome {
    let failed = |message: String| Outcome::failed(code::TOKEN, message);
    let Some((id, secret)) = bootstrap_data::token(&config.spec.join_configuration).and_then(halves) else {
        return failed("the specification names no token".to_owned());
    };
    let Some(workloads) = view.workloads() else {
        return failed("this plane reaches no workload clusters".to_owned());
    };
    let cluster = Key::new(call.namespace.clone(), call.cluster.clone());
    let client = match workloads.client(&cluster).await {
        Ok(client) => client,
        Err(error) => return failed(error.to_string()),
    };
    let result = match client.get::<Secret>(&secret_key(id)).await {
        Ok(Some(_)) => {
            let patch = Patch::Merge(json!({"stringData": {EXPIRATION: call.expires.to_string()}}));
            client.patch(&KindName::of::<Secret>(), &secret_key(id), None, &patch).await.map(|_| ())
        }
        Ok(None) => client.create_object(&token_secret(id, secret, call.expires)).await.map(|_| ()),
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => Outcome::done(),
        Err(error) => failed(error.to_string()),
    }
}

fn token_secret(id: &str, secret: &str, expires: Time) -> Secret {
    let data = [
        ("token-id", id.to_owned()),
        ("token-secret", secret.to_owned()),
        (EXPIRATION, expires.to_string()),
        ("usage-bootstrap-signing", "true".to_owned()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", GROUP.to_owned()),
        ("description", "created by capstan for a joining machine".to_owned()),
    ];
    let key = secret_key(id);
    Secret {
        metadata: ObjectMeta::named(key.namespace, key.name),
        data: data.into_iter().map(|(key, value)| (key.to_owned(), value.into_bytes())).collect(),
        kind: TYPE.to_owned(),
    }
}
