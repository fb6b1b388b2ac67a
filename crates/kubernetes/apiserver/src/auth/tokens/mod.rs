//! Issues ServiceAccount tokens, and checks them against stored objects.

mod bootstrap;
mod bound;
mod legacy;
mod request;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use capstan_env::Env;
use capstan_oidc::Token;
use capstan_pki::{Pki, PkiError};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::jwt;
use super::{ObjectSource, User};
use crate::admission::Warnings;

pub use legacy::TokenSecret;

/// Tolerance for clock skew, as in upstream's JWT library.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);
/// Size of the cache of verified signatures.
const REMEMBERED: usize = 4096;

/// The user of a token, and its audiences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenIdentity {
    pub user: User,
    /// The requested audiences that the token is valid for.
    pub audiences: Vec<String>,
}

pub struct ServiceAccountTokens {
    pki: Arc<Pki>,
    source: Arc<dyn ObjectSource>,
    env: Env,
    issuer: String,
    audiences: Vec<String>,
    /// Claims of tokens with a verified signature, by digest. Everything else is checked on every request.
    verified: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

impl ServiceAccountTokens {
    pub const DEFAULT_ISSUER: &'static str = "https://kubernetes.default.svc";

    /// Tokens are issued by `issuer` and accepted if issued for one of `audiences` (by default the issuer).
    pub fn new(
        pki: Arc<Pki>,
        source: Arc<dyn ObjectSource>,
        env: Env,
        issuer: impl Into<String>,
        audiences: Vec<String>,
    ) -> Self {
        let issuer = issuer.into();
        let audiences = if audiences.is_empty() { vec![issuer.clone()] } else { audiences };
        Self { pki, source, env, issuer, audiences, verified: Mutex::default() }
    }

    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Checks a token for some audiences. `None` if another issuer issued it.
    pub(super) fn check(
        &self,
        token: &str,
        audiences: &[String],
        warnings: &Warnings,
    ) -> Option<Result<TokenIdentity, String>> {
        let unverified = Token::parse(token)?;
        let legacy = unverified.issuer() == legacy::ISSUER;
        if !legacy && unverified.issuer() != self.issuer {
            return None;
        }
        Some(self.verified(token, unverified).and_then(|claims| {
            let accepted = self.accepted_audiences(&claims, audiences)?;
            let user = match legacy {
                true => self.check_legacy(token, &claims, warnings)?,
                false => self.check_bound(&claims)?,
            };
            Ok(TokenIdentity { user, audiences: accepted })
        }))
    }

    fn verified(&self, token: &str, unverified: Token<'_>) -> Result<Arc<Value>, String> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(claims) = self.verified.lock().get(&digest) {
            return Ok(claims.clone());
        }
        let key = self.pki.token_key().map_err(|error| error.to_string())?;
        let claims = Arc::new(jwt::verify(unverified, &[&key])?);
        let mut verified = self.verified.lock();
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(digest, claims.clone());
        Ok(claims)
    }

    fn accepted_audiences(&self, claims: &Value, wanted: &[String]) -> Result<Vec<String>, String> {
        let claimed: Vec<String> = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(|a| a.as_str().map(str::to_owned)).collect(),
            _ => vec![],
        };
        // Tokens without audience predate audiences: valid for the API only.
        let claimed = if claimed.is_empty() { self.audiences.clone() } else { claimed };
        let accepted: Vec<String> = claimed.iter().filter(|a| wanted.contains(a)).cloned().collect();
        if accepted.is_empty() {
            let list = super::rbac::quoted_list;
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                list(&claimed),
                list(wanted),
            ));
        }
        Ok(accepted)
    }

    /// `/.well-known/openid-configuration`; `server` is the external address of this server.
    pub fn openid_configuration(&self, server: &str) -> Result<Value, PkiError> {
        Ok(json!({
            "issuer": self.issuer,
            "jwks_uri": format!("{server}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.pki.token_key()?.token_algorithm()],
        }))
    }

    /// `/openid/v1/jwks`.
    pub fn key_set(&self) -> Result<Value, PkiError> {
        Ok(json!({"keys": [self.pki.token_key()?.to_jwk()]}))
    }
}

/// Whether an object was deleted before a time and is waiting for finalizers.
fn deleted_before(object: &Value, moment: Timestamp) -> bool {
    let deleted =
        object["metadata"]["deletionTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    deleted.is_some_and(|at| at < moment)
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(super) use bootstrap::check_bootstrap_token;
