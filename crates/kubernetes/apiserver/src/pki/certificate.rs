//! X.509 certificates: the authority and what it signs.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::key::{PrivateKey, pem};
use super::{PkiError, der};
use crate::env::Env;

const COMMON_NAME: &[u32] = &[2, 5, 4, 3];
const ORGANIZATION: &[u32] = &[2, 5, 4, 10];
const SUBJECT_KEY_ID: &[u32] = &[2, 5, 29, 14];
const KEY_USAGE: &[u32] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u32] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u32] = &[2, 5, 29, 19];
const AUTHORITY_KEY_ID: &[u32] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u32] = &[2, 5, 29, 37];
const SERVER_AUTH: &[u32] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u32] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Validity of the authority.
const AUTHORITY_DAYS: i32 = 3650;
/// Validity of what it signs.
const LEAF_DAYS: i32 = 365;
/// Certificates are valid from a little before they are made: clocks differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// What a leaf certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A server reached under these host names and addresses.
    Server {
        /// Host names and IP addresses.
        names: Vec<String>,
    },
    /// A client: the user's name and groups.
    Client {
        /// User name.
        name: String,
        /// Groups.
        groups: Vec<String>,
    },
}

/// A certificate with its private key.
#[derive(Debug)]
pub struct Credential {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its key.
    pub key: PrivateKey,
}

impl Credential {
    /// The certificate as PEM.
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// Reads both from PEM; they must belong together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, PkiError> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|_| PkiError::Certificate("no certificate in the PEM text"))?;
        let key = PrivateKey::from_pem(key)?;
        let parsed = parse(&certificate)?;
        if parsed.public_key().raw != key.public_key_info() {
            return Err(PkiError::Certificate("certificate and key do not belong together"));
        }
        Ok(Self { certificate, key })
    }

    /// When less than a third of the certificate's life is left.
    pub fn renew_at(&self) -> Result<Timestamp, PkiError> {
        let (from, to) = validity(&self.certificate)?;
        Ok(to - (to.duration_since(from)) / 3)
    }
}

/// The certificate authority of one server: it vouches for the server and for its clients.
#[derive(Debug)]
pub struct Authority {
    credential: Credential,
}

impl Authority {
    /// A new authority with a given key.
    pub fn create(env: &Env, key: PrivateKey) -> Result<Self, PkiError> {
        let subject = name(Some("kubernetes"), &[]);
        let own_id = key_id(&key);
        let extensions = [
            extension(KEY_USAGE, true, &der::named_bits(&[0, 2, 5])),
            extension(BASIC_CONSTRAINTS, true, &der::sequence(&[der::boolean_true()])),
            extension(SUBJECT_KEY_ID, false, &der::octet_string(&own_id)),
        ];
        let body =
            Body { env, days: AUTHORITY_DAYS, subject: subject.clone(), key: &key, extensions: &extensions };
        let certificate = body.signed(&subject, &key)?;
        Ok(Self { credential: Credential { certificate, key } })
    }

    /// An authority from elsewhere.
    pub fn new(credential: Credential) -> Self {
        Self { credential }
    }

    /// The authority's own certificate and key.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Signs a certificate for a fresh key.
    pub fn issue(&self, env: &Env, leaf: &Leaf) -> Result<Credential, PkiError> {
        let key = PrivateKey::generate()?;
        let authority = parse(&self.credential.certificate)?;
        let mut extensions = vec![
            extension(KEY_USAGE, true, &der::named_bits(&[0, 2])),
            extension(BASIC_CONSTRAINTS, true, &der::sequence(&[])),
            extension(
                AUTHORITY_KEY_ID,
                false,
                &der::sequence(&[der::implicit(0, &subject_key_id(&authority, &self.credential.key))]),
            ),
        ];
        let (subject, usage) = match leaf {
            Leaf::Server { names } => {
                extensions.push(extension(ALTERNATIVE_NAMES, false, &alternative_names(names)));
                (name(Some("kube-apiserver"), &[]), SERVER_AUTH)
            }
            Leaf::Client { name: user, groups } => (name(Some(user), groups), CLIENT_AUTH),
        };
        extensions.push(extension(EXTENDED_KEY_USAGE, false, &der::sequence(&[der::oid(usage)])));
        let body = Body { env, days: LEAF_DAYS, subject, key: &key, extensions: &extensions };
        let certificate = body.signed(authority.subject().as_raw(), &self.credential.key)?;
        Ok(Credential { certificate, key })
    }

    /// Whether a certificate carries this authority's signature and says what `leaf` says.
    pub fn issued(&self, certificate: &CertificateDer<'_>, leaf: &Leaf) -> bool {
        let (Ok(own), Ok(other)) = (parse(&self.credential.certificate), parse(certificate)) else {
            return false;
        };
        let subject = match leaf {
            Leaf::Server { .. } => name(Some("kube-apiserver"), &[]),
            Leaf::Client { name: user, groups } => name(Some(user), groups),
        };
        let names = match leaf {
            Leaf::Client { .. } => true,
            Leaf::Server { names } => {
                let wanted = alternative_names(names);
                other
                    .extensions()
                    .iter()
                    .any(|e| e.oid.as_bytes() == &der::oid(ALTERNATIVE_NAMES)[2..] && e.value == wanted)
            }
        };
        // x509-parser is built without signature checking: the issuer's key id tells authorities apart.
        let issuer_id = der::sequence(&[der::implicit(0, &subject_key_id(&own, &self.credential.key))]);
        let by_us = other
            .extensions()
            .iter()
            .any(|e| e.oid.as_bytes() == &der::oid(AUTHORITY_KEY_ID)[2..] && e.value == issuer_id);
        names && by_us && other.subject().as_raw() == subject
    }
}

struct Body<'a> {
    env: &'a Env,
    days: i32,
    subject: Vec<u8>,
    key: &'a PrivateKey,
    extensions: &'a [Vec<u8>],
}

impl Body<'_> {
    fn signed(&self, issuer: &[u8], signer: &PrivateKey) -> Result<CertificateDer<'static>, PkiError> {
        let now = self.env.now();
        let validity = der::sequence(&[der::time(now - BACKDATE), der::time(now + DAY * self.days)]);
        let body = der::sequence(&[
            der::explicit(0, &der::integer(&[2])),
            der::integer(&serial(self.env)),
            signer.certificate_algorithm(),
            issuer.to_vec(),
            validity,
            self.subject.clone(),
            self.key.public_key_info(),
            der::explicit(3, &der::sequence(self.extensions)),
        ]);
        let signature = signer.sign_certificate(&body)?;
        let certificate = der::sequence(&[body, signer.certificate_algorithm(), der::bit_string(&signature)]);
        Ok(certificate.into())
    }
}

fn extension(id: &[u32], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(id)];
    if critical {
        parts.push(der::boolean_true());
    }
    parts.push(der::octet_string(value));
    der::sequence(&parts)
}

/// A distinguished name: organizations, then the common name, each an RDN of its own as Go writes them.
fn name(common_name: Option<&str>, organizations: &[String]) -> Vec<u8> {
    let attribute = |id: &[u32], value: &str| der::set(&der::sequence(&[der::oid(id), der::text(value)]));
    let organizations = organizations.iter().map(|group| attribute(ORGANIZATION, group));
    let common_name = common_name.map(|name| attribute(COMMON_NAME, name));
    der::sequence(&organizations.chain(common_name).collect::<Vec<_>>())
}

fn alternative_names(names: &[String]) -> Vec<u8> {
    let general = |name: &String| match name.parse() {
        Ok(IpAddr::V4(address)) => der::implicit(7, &address.octets()),
        Ok(IpAddr::V6(address)) => der::implicit(7, &address.octets()),
        Err(_) => der::implicit(2, name.as_bytes()),
    };
    der::sequence(&names.iter().map(general).collect::<Vec<_>>())
}

/// A random positive serial number of 127 bits.
fn serial(env: &Env) -> [u8; 16] {
    let mut serial = uuid::Uuid::parse_str(&env.uuid()).unwrap_or_default().into_bytes();
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial
}

fn key_id(key: &PrivateKey) -> Vec<u8> {
    Sha256::digest(key.public_key_info())[..20].to_vec()
}

/// The key id the certificate itself names, or else the one we would have given it.
fn subject_key_id(certificate: &X509Certificate<'_>, key: &PrivateKey) -> Vec<u8> {
    use x509_parser::extensions::ParsedExtension;
    let named = certificate.extensions().iter().find_map(|e| match e.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    });
    named.unwrap_or_else(|| key_id(key))
}

/// Parses a certificate.
pub(super) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, PkiError> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|_| PkiError::Certificate("the certificate cannot be read"))?;
    Ok(parsed)
}

/// From when until when a certificate is valid.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), PkiError> {
    let parsed = parse(certificate)?;
    let second = |time: x509_parser::time::ASN1Time| {
        Timestamp::from_second(time.timestamp())
            .map_err(|_| PkiError::Certificate("the certificate's validity cannot be read"))
    };
    Ok((second(parsed.validity().not_before)?, second(parsed.validity().not_after)?))
}
