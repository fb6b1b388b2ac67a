//! Writes X.509 certificates: DER, names, extensions, and a [`Template`] that a [`Signer`] signs.
//!
//! rcgen supports only one value per attribute of a name: a user in two groups needs two organizations. It also
//! cannot copy the subject of a foreign CA byte for byte.
//!
//! Only RSA keys are generated here ([`rsa_key`]). Randomness is a parameter: the output depends on the arguments
//! only.

pub mod der;
mod extension;
mod rsa;
mod stream;
mod template;

pub use extension::{
    AUTHORITY_KEY_ID, CLIENT_AUTH, KeyUse, SERVER_AUTH, SUBJECT_ALTERNATIVE_NAMES, alternative_names,
    authority_key_id, basic_constraints, extended_key_usage, key_usage, subject_alternative_names,
    subject_key_id,
};
pub use rsa::rsa_key;
pub use stream::Stream;
pub use template::{Signer, Template, key_id, name};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// PEM of DER bytes.
pub fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
