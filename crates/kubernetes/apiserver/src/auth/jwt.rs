//! JSON Web Tokens in compact form.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_pki::{PkiError, PrivateKey};
use serde_json::{Value, json};

pub(super) fn sign(key: &PrivateKey, claims: &Value) -> Result<String, PkiError> {
    let header = json!({"alg": key.token_algorithm(), "kid": key.id()});
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let message = format!("{}.{}", encode(&header), encode(claims));
    let signature = key.sign_token(message.as_bytes())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A parsed token. Nothing in it is trusted before [`Unverified::verify`].
pub(super) struct Unverified<'a> {
    message: &'a str,
    header: Value,
    claims: Value,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    /// `None` if the text does not have the three parts of a token.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let json = |part: &str| serde_json::from_slice::<Value>(&decode(part)?).ok().filter(Value::is_object);
        Some(Self { message, header: json(header)?, claims: json(claims)?, signature: decode(signature)? })
    }

    /// The issuer claim.
    pub(super) fn issuer(&self) -> &str {
        self.claims["iss"].as_str().unwrap_or_default()
    }

    /// The claims, if one of the keys verifies the signature. The algorithm is the key's, never the token's.
    pub(super) fn verify(self, keys: &[&PrivateKey]) -> Result<Value, String> {
        let id = self.header["kid"].as_str().filter(|id| !id.is_empty());
        let mut keys = keys.iter().filter(|key| id.is_none_or(|id| id == key.id())).peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found".into());
        }
        let vouches = |key: &&PrivateKey| {
            self.header["alg"] == key.token_algorithm()
                && key.verifies_token(self.message.as_bytes(), &self.signature)
        };
        match keys.any(vouches) {
            true => Ok(self.claims),
            false => Err("go-jose/go-jose: error in cryptographic primitive".into()),
        }
    }
}
