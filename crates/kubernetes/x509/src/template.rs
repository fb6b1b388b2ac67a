//! A certificate before and after signing.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::der;

const COMMON_NAME: &[u32] = &[2, 5, 4, 3];
const ORGANIZATION: &[u32] = &[2, 5, 4, 10];

/// A private key that signs certificates.
pub trait Signer {
    /// The public key as `SubjectPublicKeyInfo`.
    fn public_key_info(&self) -> Vec<u8>;
    /// `AlgorithmIdentifier` of its signatures on certificates.
    fn certificate_algorithm(&self) -> Vec<u8>;
    /// Signs a certificate; `None` if the key cannot be used.
    fn sign_certificate(&self, message: &[u8]) -> Option<Vec<u8>>;
}

/// The content of a certificate.
#[derive(Debug, Clone)]
pub struct Template<'a> {
    /// Serial number, big-endian.
    pub serial: &'a [u8],
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Distinguished name, as DER; see [`name`].
    pub subject: &'a [u8],
    /// `SubjectPublicKeyInfo` of the certified key.
    pub public_key_info: &'a [u8],
    /// Extensions, as DER.
    pub extensions: &'a [Vec<u8>],
}

impl Template<'_> {
    /// The certificate as DER, signed by `issuer` (the issuer's subject, byte for byte).
    pub fn signed(&self, issuer: &[u8], signer: &impl Signer) -> Option<Vec<u8>> {
        let body = der::sequence(&[
            der::explicit(0, &der::integer(&[2])),
            der::integer(self.serial),
            signer.certificate_algorithm(),
            issuer.to_vec(),
            der::sequence(&[der::time(self.not_before), der::time(self.not_after)]),
            self.subject.to_vec(),
            self.public_key_info.to_vec(),
            der::explicit(3, &der::sequence(self.extensions)),
        ]);
        let signature = signer.sign_certificate(&body)?;
        Some(der::sequence(&[body, signer.certificate_algorithm(), der::bit_string(&signature)]))
    }
}

/// A distinguished name: organizations, then the common name, each in its own RDN, as Go writes them.
pub fn name<S: AsRef<str>>(common_name: Option<&str>, organizations: &[S]) -> Vec<u8> {
    let attribute = |id: &[u32], value: &str| der::set(&der::sequence(&[der::oid(id), der::text(value)]));
    let organizations = organizations.iter().map(|group| attribute(ORGANIZATION, group.as_ref()));
    let common_name = common_name.map(|name| attribute(COMMON_NAME, name));
    der::sequence(&organizations.chain(common_name).collect::<Vec<_>>())
}

pub fn key_id(public_key_info: &[u8]) -> Vec<u8> {
    Sha256::digest(public_key_info)[..20].to_vec()
}
