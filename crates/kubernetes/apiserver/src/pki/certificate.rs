//! X.509 certificates: the authority and what it signs.

use capstan_x509::{self as x509, KeyUse, Template, der, name, pem};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::PkiError;
use super::key::PrivateKey;
use crate::env::Env;

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
        let subject = name::<&str>(Some("kubernetes"), &[]);
        let extensions = [
            x509::key_usage(&[
                KeyUse::DigitalSignature,
                KeyUse::KeyEncipherment,
                KeyUse::CertificateSignature,
            ]),
            x509::basic_constraints(true, None),
            x509::subject_key_id(&key_id(&key)),
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
            x509::key_usage(&[KeyUse::DigitalSignature, KeyUse::KeyEncipherment]),
            x509::basic_constraints(false, None),
            x509::authority_key_id(&subject_key_id(&authority, &self.credential.key)),
        ];
        let (subject, usage) = match leaf {
            Leaf::Server { names } => {
                extensions.push(x509::subject_alternative_names(names));
                (name::<&str>(Some("kube-apiserver"), &[]), x509::SERVER_AUTH)
            }
            Leaf::Client { name: user, groups } => (name(Some(user), groups), x509::CLIENT_AUTH),
        };
        extensions.push(x509::extended_key_usage(usage));
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
            Leaf::Server { .. } => name::<&str>(Some("kube-apiserver"), &[]),
            Leaf::Client { name: user, groups } => name(Some(user), groups),
        };
        let names = match leaf {
            Leaf::Client { .. } => true,
            Leaf::Server { names } => {
                let wanted = x509::alternative_names(names);
                other.extensions().iter().any(|e| {
                    e.oid.as_bytes() == &der::oid(x509::SUBJECT_ALTERNATIVE_NAMES)[2..] && e.value == wanted
                })
            }
        };
        // x509-parser is built without signature checking: the issuer's key id tells authorities apart.
        let issuer_id = der::sequence(&[der::implicit(0, &subject_key_id(&own, &self.credential.key))]);
        let by_us = other
            .extensions()
            .iter()
            .any(|e| e.oid.as_bytes() == &der::oid(x509::AUTHORITY_KEY_ID)[2..] && e.value == issuer_id);
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
        let template = Template {
            serial: &serial(self.env),
            not_before: now - BACKDATE,
            not_after: now + DAY * self.days,
            subject: &self.subject,
            public_key_info: &self.key.public_key_info(),
            extensions: self.extensions,
        };
        let certificate = template.signed(issuer, signer).ok_or(PkiError::Key("signing failed"))?;
        Ok(certificate.into())
    }
}

/// A random positive serial number of 127 bits.
fn serial(env: &Env) -> [u8; 16] {
    let mut serial = uuid::Uuid::parse_str(&env.uuid()).unwrap_or_default().into_bytes();
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial
}

fn key_id(key: &PrivateKey) -> Vec<u8> {
    x509::key_id(&key.public_key_info())
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
