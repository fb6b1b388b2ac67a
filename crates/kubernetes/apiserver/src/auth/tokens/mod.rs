//! ServiceAccount tokens: issued, and checked against what is stored.

mod bootstrap;
mod bound;
mod legacy;
mod request;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use capstan_env::Env;
use capstan_pki::{Pki, PkiError};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::jwt::Unverified;
use super::{ObjectSource, User};
use crate::admission::Warnings;

pub use legacy::TokenSecret;

/// Tolerance for clocks that differ, as upstream's JWT library has it.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);
/// Tokens whose signature is remembered as good.
const REMEMBERED: usize = 4096;

/// Who a token says the bearer is, and for whom it was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenIdentity {
    /// The user.
    pub user: User,
    /// Those of the wanted audiences that the token is for.
    pub audiences: Vec<String>,
}

/// Issues and checks ServiceAccount tokens.
pub struct ServiceAccountTokens {
    pki: Arc<Pki>,
    source: Arc<dyn ObjectSource>,
    env: Env,
    issuer: String,
    audiences: Vec<String>,
    /// Claims of tokens whose signature was good, by digest. Everything else is checked each time.
    verified: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

impl ServiceAccountTokens {
    /// Issuer of tokens unless another is chosen.
    pub const DEFAULT_ISSUER: &'static str = "https://kubernetes.default.svc";

    /// Tokens are issued by `issuer`, and accepted here if issued for one of `audiences` (none: the issuer).
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

    /// Audiences of the API itself.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Checks a token for some audiences. None if it is not ours to judge.
    pub(super) fn check(
        &self,
        token: &str,
        audiences: &[String],
        warnings: &Warnings,
    ) -> Option<Result<TokenIdentity, String>> {
        let unverified = Unverified::parse(token)?;
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

    fn verified(&self, token: &str, unverified: Unverified<'_>) -> Result<Arc<Value>, String> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(claims) = self.verified.lock().get(&digest) {
            return Ok(claims.clone());
        }
        let key = self.pki.token_key().map_err(|error| error.to_string())?;
        let claims = Arc::new(unverified.verify(&[&key])?);
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
        // Tokens without audience are from before there were audiences: for the API alone.
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

    /// `/.well-known/openid-configuration`; `jwks_uri` is where this server is reached from outside.
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

/// Whether an object was deleted before a moment and only waits for its finalizers.
fn deleted_before(object: &Value, moment: Timestamp) -> bool {
    let deleted =
        object["metadata"]["deletionTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    deleted.is_some_and(|at| at < moment)
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(super) use bootstrap::check_bootstrap_token;
