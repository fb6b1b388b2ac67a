//! Signatures of JSON Web Tokens with the server's own keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_oidc::Token;
use capstan_pki::{PkiError, PrivateKey};
use serde_json::{Value, json};

pub(super) fn sign(key: &PrivateKey, claims: &Value) -> Result<String, PkiError> {
    let header = json!({"alg": key.token_algorithm(), "kid": key.id()});
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let message = format!("{}.{}", encode(&header), encode(claims));
    let signature = key.sign_token(message.as_bytes())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The claims of a token, if one of the keys verifies its signature. The algorithm is the key's, never the token's.
pub(super) fn verify(token: Token<'_>, keys: &[&PrivateKey]) -> Result<Value, String> {
    let is_named = |key: &&&PrivateKey| token.key.is_empty() || token.key == key.id();
    let mut keys = keys.iter().filter(is_named).peekable();
    if keys.peek().is_none() {
        return Err("invalid signature, no keys found".into());
    }
    let vouches = |key: &&PrivateKey| {
        token.algorithm == key.token_algorithm()
            && key.verifies_token(token.message.as_bytes(), &token.signature)
    };
    match keys.any(vouches) {
        true => Ok(token.into_claims()),
        false => Err("go-jose/go-jose: error in cryptographic primitive".into()),
    }
}
