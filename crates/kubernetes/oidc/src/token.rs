//! JSON Web Tokens in compact form. Nothing in one is trusted before its signature is verified.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The longest token that is looked at: request headers are bounded too.
const MAX: usize = 64 * 1024;

/// A parsed token, of whatever issuer.
pub struct Token<'a> {
    /// Signed part of the token.
    pub message: &'a str,
    pub signature: Vec<u8>,
    pub algorithm: String,
    /// Id of the key; empty if the token names none.
    pub key: String,
    claims: Value,
}

impl<'a> Token<'a> {
    /// `None` if the text does not have the three parts of a token.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let object =
            |part: &str| serde_json::from_slice::<Value>(&decode(part)?).ok().filter(Value::is_object);
        let header = object(header)?;
        let text = |name: &str| header[name].as_str().unwrap_or_default().to_owned();
        Some(Self {
            message,
            signature: decode(signature)?,
            algorithm: text("alg"),
            key: text("kid"),
            claims: object(claims)?,
        })
    }

    /// The issuer that the token claims to be of.
    pub fn issuer(&self) -> &str {
        self.claims["iss"].as_str().unwrap_or_default()
    }

    /// The claims. Only for whoever has verified the signature.
    pub fn into_claims(self) -> Value {
        self.claims
    }
}
