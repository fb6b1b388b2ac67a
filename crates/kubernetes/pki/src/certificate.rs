//! X.509 certificates: the authority and what it signs.

use capstan_env::Env;
use capstan_x509::{self as x509, KeyUse, Template, der, name, pem};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::PkiError;
use super::key::PrivateKey;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Validity of the authority.
const AUTHORITY_DAYS: i32 = 3650;
/// Validity of what it signs.
const LEAF_DAYS: i32 = 365;
/// Certificates are valid from a little before they are made: clocks differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// Subject and use of a leaf certificate.
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
        groups: Vec<String>,
    },
    /// A server that is also a client of its peers, as members of etcd are.
    Peer {
        name: String,
        /// Host names and IP addresses.
        names: Vec<String>,
    },
}

impl Leaf {
    /// The subject of the certificate.
    fn subject(&self) -> Vec<u8> {
        match self {
            Self::Server { .. } => name::<&str>(Some("kube-apiserver"), &[]),
            Self::Client { name: user, groups } => name(Some(user), groups),
            Self::Peer { name: peer, .. } => name::<&str>(Some(peer), &[]),
        }
    }

    /// Host names and addresses that the certificate is for, if it is a server's.
    fn names(&self) -> Option<&[String]> {
        match self {
            Self::Server { names } | Self::Peer { names, .. } => Some(names),
            Self::Client { .. } => None,
        }
    }

    /// What the certificate may be used for in TLS.
    fn uses(&self) -> &'static [&'static [u32]] {
        match self {
            Self::Server { .. } => &[x509::SERVER_AUTH],
            Self::Client { .. } => &[x509::CLIENT_AUTH],
            Self::Peer { .. } => &[x509::SERVER_AUTH, x509::CLIENT_AUTH],
        }
    }
}

/// A certificate with its private key.
#[derive(Debug)]
pub struct Credential {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKey,
}

impl Credential {
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

    /// When less than a third of the certificate's lifetime is left.
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
        Self::named(env, "kubernetes", key, DAY * AUTHORITY_DAYS)
    }

    /// A new authority with a name of its own, valid for some time from now.
    pub fn named(
        env: &Env,
        common_name: &str,
        key: PrivateKey,
        valid_for: SignedDuration,
    ) -> Result<Self, PkiError> {
        let subject = name::<&str>(Some(common_name), &[]);
        let extensions = [
            x509::key_usage(&[
                KeyUse::DigitalSignature,
                KeyUse::KeyEncipherment,
                KeyUse::CertificateSignature,
            ]),
            x509::basic_constraints(true, None),
            x509::subject_key_id(&key_id(&key)),
        ];
        let body = Body { env, valid_for, subject: subject.clone(), key: &key, extensions: &extensions };
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
        self.issue_for(env, leaf, PrivateKey::generate()?, DAY * LEAF_DAYS)
    }

    /// Signs a certificate for a given key, valid for some time from now.
    pub fn issue_for(
        &self,
        env: &Env,
        leaf: &Leaf,
        key: PrivateKey,
        valid_for: SignedDuration,
    ) -> Result<Credential, PkiError> {
        let authority = parse(&self.credential.certificate)?;
        let mut extensions = vec![
            x509::key_usage(&[KeyUse::DigitalSignature, KeyUse::KeyEncipherment]),
            x509::basic_constraints(false, None),
            x509::authority_key_id(&subject_key_id(&authority, &self.credential.key)),
        ];
        extensions.extend(leaf.names().map(x509::subject_alternative_names));
        extensions.push(x509::extended_key_usage(leaf.uses()));
        let body = Body { env, valid_for, subject: leaf.subject(), key: &key, extensions: &extensions };
        let certificate = body.signed(authority.subject().as_raw(), &self.credential.key)?;
        Ok(Credential { certificate, key })
    }

    /// Whether a certificate carries this authority's signature and says what `leaf` says.
    pub fn issued(&self, certificate: &CertificateDer<'_>, leaf: &Leaf) -> bool {
        let (Ok(own), Ok(other)) = (parse(&self.credential.certificate), parse(certificate)) else {
            return false;
        };
        let names = leaf.names().is_none_or(|names| {
            let wanted = x509::alternative_names(names);
            other.extensions().iter().any(|e| {
                e.oid.as_bytes() == &der::oid(x509::SUBJECT_ALTERNATIVE_NAMES)[2..] && e.value == wanted
            })
        });
        // x509-parser is built without signature checking: the issuer's key id identifies the authority.
        let issuer_id = der::sequence(&[der::implicit(0, &subject_key_id(&own, &self.credential.key))]);
        let by_us = other
            .extensions()
            .iter()
            .any(|e| e.oid.as_bytes() == &der::oid(x509::AUTHORITY_KEY_ID)[2..] && e.value == issuer_id);
        names && by_us && other.subject().as_raw() == leaf.subject()
    }
}

struct Body<'a> {
    env: &'a Env,
    valid_for: SignedDuration,
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
            not_after: now + self.valid_for,
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
