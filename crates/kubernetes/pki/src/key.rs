//! Private keys that sign certificates and tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_x509::{Signer, der, pem};
use ring::rand::SystemRandom;
use ring::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize as _, ZeroizeOnDrop};

use super::PkiError;

const EC_PUBLIC_KEY: &[u32] = &[1, 2, 840, 10045, 2, 1];
const P256: &[u32] = &[1, 2, 840, 10045, 3, 1, 7];
const P384: &[u32] = &[1, 3, 132, 0, 34];
const RSA: &[u32] = &[1, 2, 840, 113549, 1, 1, 1];

/// A private key: ECDSA on P-256 (what is generated here), ECDSA on P-384 or RSA (what may be given).
pub struct PrivateKey {
    form: Form,
    /// PKCS#8, or PKCS#1 for RSA keys that came so.
    der: PrivateKeyDer<'static>,
}

enum Form {
    /// ring ties a key to one encoding of signatures; certificates and tokens want different ones.
    P256 {
        asn1: EcdsaKeyPair,
        fixed: EcdsaKeyPair,
    },
    P384 {
        asn1: EcdsaKeyPair,
        fixed: EcdsaKeyPair,
    },
    Rsa(RsaKeyPair),
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.der.zeroize();
    }
}

impl ZeroizeOnDrop for PrivateKey {}

impl PrivateKey {
    /// A fresh ECDSA key on P-256. ring draws from the operating system and takes no other source.
    pub fn generate() -> Result<Self, PkiError> {
        let document =
            EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
                .map_err(|_| PkiError::Key("the operating system gave no randomness"))?;
        Self::from_der(PrivateKeyDer::Pkcs8(document.as_ref().to_vec().into()))
    }

    /// Reads a PEM key: PKCS#8, PKCS#1 or SEC1.
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| PkiError::Key("no private key in the PEM text"))?;
        Self::from_der(der)
    }

    fn from_der(mut der: PrivateKeyDer<'static>) -> Result<Self, PkiError> {
        let unusable = || PkiError::Key("neither ECDSA on P-256 or P-384 nor RSA of at least 2048 bits");
        let form = match &der {
            PrivateKeyDer::Pkcs8(key) => {
                let bytes = key.secret_pkcs8_der();
                ecdsa(bytes).or_else(|| RsaKeyPair::from_pkcs8(bytes).ok().map(Form::Rsa))
            }
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(Form::Rsa),
            PrivateKeyDer::Sec1(key) => {
                let wrapped = |curve| pkcs8(curve, key.secret_sec1_der());
                let found = [P256, P384].into_iter().map(wrapped).find(|bytes| ecdsa(bytes).is_some());
                let bytes = found.ok_or_else(unusable)?;
                der.zeroize();
                return Self::from_der(PrivateKeyDer::Pkcs8(bytes.into()));
            }
            _ => None,
        };
        Ok(Self { form: form.ok_or_else(unusable)?, der })
    }

    /// The key as PEM. Nothing clears the text.
    pub fn to_pem(&self) -> String {
        let label = match self.der {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        pem(label, self.der.secret_der())
    }

    pub fn to_rustls(&self) -> PrivateKeyDer<'static> {
        self.der.clone_key()
    }

    /// The public half as `SubjectPublicKeyInfo`.
    pub fn public_key_info(&self) -> Vec<u8> {
        match &self.form {
            Form::P256 { asn1, .. } => ec_public_key_info(P256, asn1.public_key().as_ref()),
            Form::P384 { asn1, .. } => ec_public_key_info(P384, asn1.public_key().as_ref()),
            Form::Rsa(key) => der::sequence(&[
                der::sequence(&[der::oid(RSA), der::null()]),
                der::bit_string(key.public_key().as_ref()),
            ]),
        }
    }

    /// JOSE name of token signatures: `ES256`, `ES384` or `RS256`.
    pub fn token_algorithm(&self) -> &'static str {
        match &self.form {
            Form::P256 { .. } => "ES256",
            Form::P384 { .. } => "ES384",
            Form::Rsa(_) => "RS256",
        }
    }

    /// A signature as tokens carry it.
    pub fn sign_token(&self, message: &[u8]) -> Result<Vec<u8>, PkiError> {
        match &self.form {
            Form::P256 { fixed, .. } | Form::P384 { fixed, .. } => ecdsa_sign(fixed, message),
            Form::Rsa(key) => rsa_sign(key, message),
        }
    }

    /// Whether a token signature was made with this key.
    pub fn verifies_token(&self, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, public): (&dyn signature::VerificationAlgorithm, &[u8]) = match &self.form {
            Form::P256 { fixed, .. } => (&signature::ECDSA_P256_SHA256_FIXED, fixed.public_key().as_ref()),
            Form::P384 { fixed, .. } => (&signature::ECDSA_P384_SHA384_FIXED, fixed.public_key().as_ref()),
            Form::Rsa(key) => (&signature::RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref()),
        };
        signature::UnparsedPublicKey::new(algorithm, public).verify(message, signature).is_ok()
    }

    /// Id of the key in token headers and key sets, derived as upstream derives it.
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.public_key_info()))
    }

    /// The public half as a JSON Web Key.
    pub fn to_jwk(&self) -> Value {
        let (id, algorithm) = (self.id(), self.token_algorithm());
        let coordinates = |point: &[u8]| {
            // Uncompressed points: 0x04, then x and y of equal length.
            let (x, y) = point[1..].split_at(point.len() / 2);
            (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
        };
        let (key, curve) = match &self.form {
            Form::P256 { asn1, .. } => (asn1, "P-256"),
            Form::P384 { asn1, .. } => (asn1, "P-384"),
            Form::Rsa(key) => {
                let public: RsaPublicKeyComponents<Vec<u8>> = key.public().into();
                let (n, e) = (URL_SAFE_NO_PAD.encode(public.n), URL_SAFE_NO_PAD.encode(public.e));
                return json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": n, "e": e});
            }
        };
        let (x, y) = coordinates(key.public_key().as_ref());
        json!({"use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y})
    }
}

impl Signer for PrivateKey {
    fn public_key_info(&self) -> Vec<u8> {
        PrivateKey::public_key_info(self)
    }

    fn certificate_algorithm(&self) -> Vec<u8> {
        match &self.form {
            Form::P256 { .. } => der::sequence(&[der::oid(&[1, 2, 840, 10045, 4, 3, 2])]),
            Form::P384 { .. } => der::sequence(&[der::oid(&[1, 2, 840, 10045, 4, 3, 3])]),
            Form::Rsa(_) => der::sequence(&[der::oid(&[1, 2, 840, 113549, 1, 1, 11]), der::null()]),
        }
    }

    fn sign_certificate(&self, message: &[u8]) -> Option<Vec<u8>> {
        match &self.form {
            Form::P256 { asn1, .. } | Form::P384 { asn1, .. } => ecdsa_sign(asn1, message).ok(),
            Form::Rsa(key) => rsa_sign(key, message).ok(),
        }
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateKey").field("algorithm", &self.token_algorithm()).finish_non_exhaustive()
    }
}

fn ecdsa(pkcs8: &[u8]) -> Option<Form> {
    let key = |algorithm: &'static EcdsaSigningAlgorithm| {
        EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new()).ok()
    };
    let p256 = key(&signature::ECDSA_P256_SHA256_ASN1_SIGNING)
        .zip(key(&signature::ECDSA_P256_SHA256_FIXED_SIGNING))
        .map(|(asn1, fixed)| Form::P256 { asn1, fixed });
    p256.or_else(|| {
        key(&signature::ECDSA_P384_SHA384_ASN1_SIGNING)
            .zip(key(&signature::ECDSA_P384_SHA384_FIXED_SIGNING))
            .map(|(asn1, fixed)| Form::P384 { asn1, fixed })
    })
}

fn pkcs8(curve: &[u32], sec1: &[u8]) -> Vec<u8> {
    let algorithm = der::sequence(&[der::oid(EC_PUBLIC_KEY), der::oid(curve)]);
    der::sequence(&[der::integer(&[0]), algorithm, der::octet_string(sec1)])
}

fn ec_public_key_info(curve: &[u32], point: &[u8]) -> Vec<u8> {
    der::sequence(&[der::sequence(&[der::oid(EC_PUBLIC_KEY), der::oid(curve)]), der::bit_string(point)])
}

const SIGNING_FAILED: PkiError = PkiError::Key("signing failed");

fn ecdsa_sign(key: &EcdsaKeyPair, message: &[u8]) -> Result<Vec<u8>, PkiError> {
    let signature = key.sign(&SystemRandom::new(), message).map_err(|_| SIGNING_FAILED)?;
    Ok(signature.as_ref().to_vec())
}

fn rsa_sign(key: &RsaKeyPair, message: &[u8]) -> Result<Vec<u8>, PkiError> {
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&signature::RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
        .map_err(|_| SIGNING_FAILED)?;
    Ok(signature)
}
