//! Signatures: HMAC-SHA1 over the sorted, lower-cased parameters.
//!
//! The server sorts the names as they were sent, byte by byte, and lower-cases afterwards; clients that lower-case
//! first fail as soon as a name has a capital letter before a small one. Values are written as Java's `URLEncoder`
//! writes them with `%20` for spaces, so `*` stays and `~` does not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

use crate::credentials::Credentials;

/// How long a signature holds. A server that insists on times takes at most 15 minutes; ten leave five minutes for a
/// server whose clock is behind ours, and ten for one that is ahead.
pub const VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// What Java's `URLEncoder` escapes, spaces included.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'*');

/// A value as it stands in a signature, a query and a form.
pub fn encode(value: &str) -> String {
    utf8_percent_encode(value, VALUE).to_string()
}

/// The text that is signed.
pub fn canonical(parameters: &[(String, String)]) -> String {
    let mut sorted: Vec<&(String, String)> = parameters.iter().collect();
    sorted.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
    let pairs: Vec<String> = sorted.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&").to_lowercase()
}

/// The signature of parameters.
pub fn signature(parameters: &[(String, String)], secret_key: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret_key.as_bytes());
    STANDARD.encode(hmac::sign(&key, canonical(parameters).as_bytes()))
}

/// A whole request as query or form: the parameters, what every request has, and the signature.
pub fn signed(
    command: &str,
    parameters: &[(String, String)],
    credentials: &Credentials,
    now: Timestamp,
) -> String {
    let expires = now.saturating_add(VALIDITY).unwrap_or(Timestamp::MAX);
    let mut all = parameters.to_vec();
    for (name, value) in [
        ("command", command),
        ("apiKey", credentials.api_key()),
        ("response", "json"),
        ("signatureversion", "3"),
        ("expires", &expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    ] {
        all.push((name.to_owned(), value.to_owned()));
    }
    let signature = signature(&all, credentials.secret_key());
    all.push(("signature".to_owned(), signature));
    // Names are escaped on the way although they are not when signed: brackets have no place in a query.
    let pairs: Vec<String> =
        all.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}
