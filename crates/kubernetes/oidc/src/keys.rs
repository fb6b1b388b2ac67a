//! The published keys of an issuer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

use crate::token::Token;

/// Keys of one issuer that are read at most.
const MAX_KEYS: usize = 100;

/// A key that signatures can be verified with.
pub(crate) struct Key {
    id: String,
    /// The algorithm that the key is for; empty for every one of its type.
    algorithm: String,
    material: Material,
}

enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of a JSON Web Key Set that are for signatures and of a known type. Others are left out.
pub(crate) fn read(set: &Value) -> Vec<Key> {
    let all = set["keys"].as_array().into_iter().flatten().take(MAX_KEYS);
    all.filter(|key| key["use"].as_str().is_none_or(|usage| usage == "sig")).filter_map(key).collect()
}

fn key(json: &Value) -> Option<Key> {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name).trim_end_matches('=')).ok();
    // An uncompressed point: both coordinates at full length.
    let point = |length: usize| -> Option<Vec<u8>> {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == length && y.len() == length).then(|| [&[4][..], &x, &y].concat())
    };
    let material = match (text("kty"), text("crv")) {
        ("RSA", _) => Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
        ("EC", "P-256") => Material::P256(point(32)?),
        ("EC", "P-384") => Material::P384(point(48)?),
        ("OKP", "Ed25519") => Material::Ed25519(bytes("x")?),
        _ => return None,
    };
    Some(Key { id: text("kid").to_owned(), algorithm: text("alg").to_owned(), material })
}

impl Key {
    /// Whether a token names this key, or none.
    pub fn may_be_of(&self, token: &Token<'_>) -> bool {
        token.key.is_empty() || token.key == self.id
    }

    /// Whether the key signed the token. The algorithm must fit the key: a token cannot choose a weaker one.
    pub fn signed(&self, token: &Token<'_>) -> bool {
        if !self.algorithm.is_empty() && self.algorithm != token.algorithm {
            return false;
        }
        let (message, signature) = (token.message.as_bytes(), &token.signature[..]);
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match (&self.material, token.algorithm.as_str()) {
            (Material::Rsa { modulus, exponent }, algorithm) => rsa(algorithm).is_some_and(|parameters| {
                let components = ring::rsa::PublicKeyComponents { n: modulus, e: exponent };
                components.verify(parameters, message, signature).is_ok()
            }),
            (Material::P256(key), "ES256") => by(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Material::P384(key), "ES384") => by(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Material::Ed25519(key), "EdDSA") => by(&signature::ED25519, key),
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
        "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
        "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
