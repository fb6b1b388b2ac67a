//! Tokens in Secrets of type `kubernetes.io/service-account-token`: they do not expire, and are valid as long as the
//! Secret contains them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_pki::PkiError;
use serde_json::{Map, Value, json};

use super::{ServiceAccountTokens, uid};
use crate::admission::Warnings;
use crate::auth::{User, bucket, jwt, key, service_account};

/// Issuer of tokens in Secrets.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// What the ServiceAccount token controller must do with a Secret.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenSecret {
    /// Nothing: it is complete, or of another type.
    Unchanged,
    /// Store this version of it.
    Store(Value),
    /// Delete it: its ServiceAccount is gone.
    Delete,
}

impl TokenSecret {
    /// The type of Secrets with tokens.
    pub const TYPE: &'static str = "kubernetes.io/service-account-token";
}

impl ServiceAccountTokens {
    /// Completes a Secret that requests a token: token, CA certificate, namespace, uid of the ServiceAccount.
    pub fn complete_secret(&self, secret: &Value) -> Result<TokenSecret, PkiError> {
        let annotation = |name: &str| secret["metadata"]["annotations"][name].as_str().unwrap_or_default();
        let account_name = annotation(ACCOUNT_NAME);
        if secret["type"] != TokenSecret::TYPE || account_name.is_empty() {
            return Ok(TokenSecret::Unchanged);
        }
        let namespace = secret["metadata"]["namespace"].as_str().unwrap_or_default();
        let account = self.source.get(bucket::SERVICE_ACCOUNTS, &key(namespace, account_name));
        let wanted_uid = annotation(ACCOUNT_UID);
        let account: Option<Arc<Value>> =
            account.filter(|account| wanted_uid.is_empty() || uid(account) == wanted_uid);
        let Some(account) = account else { return Ok(TokenSecret::Delete) };

        let held = |name: &str| secret["data"][name].as_str().filter(|held| !held.is_empty());
        let authority = STANDARD.encode(self.pki.ca_pem()?);
        let has_authority = held("ca.crt") == Some(&authority);
        if has_authority && held("namespace").is_some() && held("token").is_some() {
            return Ok(TokenSecret::Unchanged);
        }
        let mut data = secret["data"].as_object().cloned().unwrap_or_else(Map::new);
        data.insert("ca.crt".into(), authority.into());
        if held("namespace").is_none() {
            data.insert("namespace".into(), STANDARD.encode(namespace).into());
        }
        if held("token").is_none() {
            let secret_name = secret["metadata"]["name"].as_str().unwrap_or_default();
            let token = self.issue_legacy(namespace, account_name, uid(&account), secret_name)?;
            data.insert("token".into(), STANDARD.encode(token).into());
        }
        let mut completed = secret.clone();
        completed["data"] = Value::Object(data);
        completed["metadata"]["annotations"][ACCOUNT_UID] = uid(&account).into();
        Ok(TokenSecret::Store(completed))
    }

    fn issue_legacy(
        &self,
        namespace: &str,
        account: &str,
        account_uid: &str,
        secret: &str,
    ) -> Result<String, PkiError> {
        let claims = json!({
            "iss": ISSUER,
            "sub": service_account::user_name(namespace, account),
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": account_uid,
        });
        jwt::sign(&*self.pki.token_key()?, &claims)
    }

    /// Checks that the Secret still contains the token and that the ServiceAccount still exists.
    pub(super) fn check_legacy(
        &self,
        token: &str,
        claims: &Value,
        warnings: &Warnings,
    ) -> Result<User, String> {
        let claim = |name: &str, missing: &str| match claims[name].as_str() {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(format!("{missing} claim is missing")),
        };
        let subject = claim("sub", "sub")?;
        let namespace = claim("kubernetes.io/serviceaccount/namespace", "namespace")?;
        let secret_name = claim("kubernetes.io/serviceaccount/secret.name", "secretName")?;
        let account_name = claim("kubernetes.io/serviceaccount/service-account.name", "serviceAccountName")?;
        let account_uid = claim("kubernetes.io/serviceaccount/service-account.uid", "serviceAccountUID")?;
        if service_account::parse_user_name(&subject) != Some((&namespace, &account_name)) {
            return Err("sub claim is invalid".into());
        }

        let secret = self.source.get(bucket::SECRETS, &key(&namespace, &secret_name));
        let secret = secret.filter(|secret| secret["metadata"]["deletionTimestamp"].is_null());
        let secret = secret.ok_or("Token has been invalidated")?;
        let held = secret["data"]["token"].as_str().and_then(|held| STANDARD.decode(held).ok());
        if !held.is_some_and(|held| same(&held, token.as_bytes())) {
            return Err("Token does not match server's copy".into());
        }
        let account = self.source.get(bucket::SERVICE_ACCOUNTS, &key(&namespace, &account_name));
        let account = account.ok_or_else(|| format!("serviceaccounts {account_name:?} not found"))?;
        if !account["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("ServiceAccount {namespace}/{account_name} has been deleted"));
        }
        if uid(&account) != account_uid {
            return Err(format!(
                "ServiceAccount UID ({}) does not match claim ({account_uid})",
                uid(&account)
            ));
        }
        if secret["metadata"]["labels"][INVALID_SINCE].as_str().is_some_and(|since| !since.is_empty()) {
            return Err(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{account_name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let listed = account["secrets"].as_array().into_iter().flatten();
        if listed.into_iter().any(|reference| reference["name"] == secret_name.as_str()) {
            warnings.add(
                "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.",
            );
        }
        Ok(service_account::user(&namespace, &account_name, &account_uid))
    }
}

/// Compares in constant time.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
