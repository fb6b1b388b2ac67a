//! Bootstrap tokens: the Secrets, and the signatures by which holders of a token verify their cluster.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::hmac;
use serde_json::{Map, Value, json};

use crate::request::KubeadmError;

/// Default lifetime of a token.
const DEFAULT_TTL: SignedDuration = SignedDuration::from_hours(24);

/// The two parts of a token; `None` if the text is not a token.
pub(crate) fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    };
    (fits(id, 6) && fits(secret, 16)).then_some((id, secret))
}

/// The Secret of a token of an `InitConfiguration`.
pub(super) fn secret(token: &Value, now: Timestamp) -> Result<Value, KubeadmError> {
    let failed = |why: &str| KubeadmError { phase: "bootstrap-token", why: why.to_owned() };
    let text = token["token"].as_str().unwrap_or_default();
    let (id, secret) = parts(text).ok_or_else(|| {
        failed("the bootstrap token is not of the form \"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\"")
    })?;
    let mut data = Map::new();
    let mut put = |key: &str, value: String| {
        data.insert(key.to_owned(), value.into());
    };
    put("token-id", id.to_owned());
    put("token-secret", secret.to_owned());
    if let Some(description) = token["description"].as_str().filter(|text| !text.is_empty()) {
        put("description", description.to_owned());
    }
    let expires = match (token["expires"].as_str(), token["ttl"].as_str()) {
        (Some(at), _) => {
            Some(at.parse::<Timestamp>().map_err(|_| failed("the expiration of the token is not a time"))?)
        }
        (None, Some(ttl)) => {
            let ttl: SignedDuration =
                ttl.parse().map_err(|_| failed("the lifetime of the token is not a duration"))?;
            (ttl > SignedDuration::ZERO).then(|| now + ttl)
        }
        (None, None) => Some(now + DEFAULT_TTL),
    };
    if let Some(expires) = expires {
        put("expiration", expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let texts = |value: &Value, default: &[&str]| -> Vec<String> {
        match value.as_array() {
            Some(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => default.iter().map(|&text| text.to_owned()).collect(),
        }
    };
    for usage in texts(&token["usages"], &["signing", "authentication"]) {
        put(&format!("usage-bootstrap-{usage}"), "true".to_owned());
    }
    let groups = texts(&token["groups"], &["system:bootstrappers:kubeadm:default-node-token"]);
    if !groups.is_empty() {
        put("auth-extra-groups", groups.join(","));
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
        "stringData": data,
    }))
}

/// Signs a text with a token: a detached JSON Web Signature.
pub(crate) fn sign(id: &str, secret: &str, content: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": id}).to_string());
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes())))
}

/// Verifies a signature of a text with a token.
pub(crate) fn verifies(id: &str, secret: &str, content: &str, signature: &str) -> bool {
    let mut parts = signature.split('.');
    let (Some(header), Some(""), Some(mac), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let read = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let claims = read(header).and_then(|header| serde_json::from_slice::<Value>(&header).ok());
    if !claims.is_some_and(|claims| claims["alg"] == "HS256" && claims["kid"] == id) {
        return false;
    }
    let Some(mac) = read(mac) else { return false };
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, message.as_bytes(), &mac).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_verifies_with_its_own_token_and_content_alone() {
        let signature = sign("abcdef", "0123456789abcdef", "content");
        assert!(verifies("abcdef", "0123456789abcdef", "content", &signature));
        for (id, secret, content) in [
            ("abcdeg", "0123456789abcdef", "content"),
            ("abcdef", "1123456789abcdef", "content"),
            ("abcdef", "0123456789abcdef", "contents"),
        ] {
            assert!(!verifies(id, secret, content, &signature), "{id} {secret} {content}");
        }
        for broken in ["", "..", "a..b", &signature.replace("..", ".x.")] {
            assert!(!verifies("abcdef", "0123456789abcdef", "content", broken), "{broken}");
        }
    }

    #[test]
    fn a_token_expires_after_a_day_by_default() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let text = "abcdef.0123456789abcdef";
        for (token, expires) in [
            (json!({"token": text}), Some("2026-01-02T00:00:00Z")),
            (json!({"token": text, "ttl": "15m0s"}), Some("2026-01-01T00:15:00Z")),
            (json!({"token": text, "ttl": "0s"}), None),
            (json!({"token": text, "expires": "2027-01-01T00:00:00Z"}), Some("2027-01-01T00:00:00Z")),
        ] {
            let secret = secret(&token, now).unwrap();
            assert_eq!(secret["stringData"]["expiration"].as_str(), expires, "{token}");
        }
        assert!(secret(&json!({"token": "nonsense"}), now).is_err());
    }
}
