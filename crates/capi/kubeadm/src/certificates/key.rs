//! Private keys of a cluster: generated from a seed, or provided by the user.

use capstan_capi_types::bootstrap::EncryptionAlgorithmType as Algorithm;
use capstan_x509::{Signer, Stream, der, pem, rsa_key};
use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::DecodePrivateKey;
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use super::Seed;
use crate::Error;

const EC_PUBLIC_KEY: &[u32] = &[1, 2, 840, 10045, 2, 1];
const P256: &[u32] = &[1, 2, 840, 10045, 3, 1, 7];
const P384: &[u32] = &[1, 3, 132, 0, 34];
const RSA: &[u32] = &[1, 2, 840, 113549, 1, 1, 1];
const ECDSA_SHA256: &[u32] = &[1, 2, 840, 10045, 4, 3, 2];
const ECDSA_SHA384: &[u32] = &[1, 2, 840, 10045, 4, 3, 3];
const RSA_SHA256: &[u32] = &[1, 2, 840, 113549, 1, 1, 11];

/// A private key. Signatures are deterministic: RFC 6979 for ECDSA, PKCS#1 v1.5 for RSA.
pub struct PrivateKey {
    form: Form,
    pem: String,
}

enum Form {
    P256(p256::ecdsa::SigningKey),
    P384(p384::ecdsa::SigningKey),
    Rsa(Box<RsaKeyPair>),
}

impl PrivateKey {
    /// Derives the key from a seed.
    pub fn from_seed(algorithm: Algorithm, seed: &Seed) -> Result<Self, Error> {
        let mut stream = seed.stream();
        match algorithm {
            Algorithm::EcdsaP256 => {
                let secret = scalar(&mut stream, [0; 32], |bytes| p256::SecretKey::from_slice(bytes).ok());
                let der = secret.to_sec1_der().map_err(|_| Error::Key("cannot be encoded"))?;
                Ok(Self { form: Form::P256(secret.into()), pem: pem("EC PRIVATE KEY", &der) })
            }
            Algorithm::EcdsaP384 => {
                let secret = scalar(&mut stream, [0; 48], |bytes| p384::SecretKey::from_slice(bytes).ok());
                let der = secret.to_sec1_der().map_err(|_| Error::Key("cannot be encoded"))?;
                Ok(Self { form: Form::P384(secret.into()), pem: pem("EC PRIVATE KEY", &der) })
            }
            Algorithm::Rsa2048 => Self::rsa(&mut stream, 2048),
            Algorithm::Rsa3072 => Self::rsa(&mut stream, 3072),
            Algorithm::Rsa4096 => Self::rsa(&mut stream, 4096),
        }
    }

    fn rsa(stream: &mut Stream, bits: usize) -> Result<Self, Error> {
        let der = rsa_key(stream, bits).ok_or(Error::Key("cannot be made"))?;
        let pair = RsaKeyPair::from_der(&der).map_err(|_| Error::Key("cannot be used"))?;
        Ok(Self { form: Form::Rsa(Box::new(pair)), pem: pem("RSA PRIVATE KEY", &der) })
    }

    /// Parses a PEM key: PKCS#8, PKCS#1 or SEC1.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let der = PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| Error::Key("there is none in the PEM text"))?;
        let form = match &der {
            PrivateKeyDer::Pkcs8(key) => {
                let bytes = key.secret_pkcs8_der();
                let p256 = || p256::SecretKey::from_pkcs8_der(bytes).ok().map(|key| Form::P256(key.into()));
                let p384 = || p384::SecretKey::from_pkcs8_der(bytes).ok().map(|key| Form::P384(key.into()));
                let rsa = || RsaKeyPair::from_pkcs8(bytes).ok().map(|key| Form::Rsa(Box::new(key)));
                p256().or_else(p384).or_else(rsa)
            }
            PrivateKeyDer::Pkcs1(key) => {
                RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(|key| Form::Rsa(Box::new(key)))
            }
            PrivateKeyDer::Sec1(key) => {
                let bytes = key.secret_sec1_der();
                let p256 = p256::SecretKey::from_sec1_der(bytes).ok().map(|key| Form::P256(key.into()));
                p256.or_else(|| p384::SecretKey::from_sec1_der(bytes).ok().map(|key| Form::P384(key.into())))
            }
            _ => None,
        };
        let form =
            form.ok_or(Error::Key("is neither ECDSA on P-256 or P-384 nor RSA of 2048 to 4096 bits"))?;
        Ok(Self { form, pem: text.to_owned() })
    }

    /// The key as PEM in the form Go programs write: PKCS#1 for RSA, SEC1 for ECDSA.
    pub fn to_pem(&self) -> &str {
        &self.pem
    }

    pub fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &self.public_key_info())
    }
}

/// A scalar of a curve. Out-of-range bytes are discarded, which happens once in 2³² attempts.
fn scalar<const N: usize, K>(
    stream: &mut Stream,
    mut bytes: [u8; N],
    read: impl Fn(&[u8]) -> Option<K>,
) -> K {
    loop {
        stream.fill(&mut bytes);
        if let Some(key) = read(&bytes) {
            return key;
        }
    }
}

impl Signer for PrivateKey {
    fn public_key_info(&self) -> Vec<u8> {
        let elliptic = |curve: &[u32], point: &[u8]| {
            der::sequence(&[
                der::sequence(&[der::oid(EC_PUBLIC_KEY), der::oid(curve)]),
                der::bit_string(point),
            ])
        };
        match &self.form {
            Form::P256(key) => elliptic(P256, key.verifying_key().to_sec1_point(false).as_bytes()),
            Form::P384(key) => elliptic(P384, key.verifying_key().to_sec1_point(false).as_bytes()),
            Form::Rsa(key) => der::sequence(&[
                der::sequence(&[der::oid(RSA), der::null()]),
                der::bit_string(key.public_key().as_ref()),
            ]),
        }
    }

    fn certificate_algorithm(&self) -> Vec<u8> {
        match &self.form {
            Form::P256(_) => der::sequence(&[der::oid(ECDSA_SHA256)]),
            Form::P384(_) => der::sequence(&[der::oid(ECDSA_SHA384)]),
            Form::Rsa(_) => der::sequence(&[der::oid(RSA_SHA256), der::null()]),
        }
    }

    fn sign_certificate(&self, message: &[u8]) -> Option<Vec<u8>> {
        match &self.form {
            Form::P256(key) => {
                let signature: p256::ecdsa::DerSignature = key.try_sign(message).ok()?;
                Some(signature.as_bytes().to_vec())
            }
            Form::P384(key) => {
                let signature: p384::ecdsa::DerSignature = key.try_sign(message).ok()?;
                Some(signature.as_bytes().to_vec())
            }
            Form::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let algorithm = match &self.form {
            Form::P256(_) => "ECDSA-P256",
            Form::P384(_) => "ECDSA-P384",
            Form::Rsa(_) => "RSA",
        };
        write!(f, "PrivateKey({algorithm})")
    }
}
