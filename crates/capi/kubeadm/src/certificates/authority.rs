//! A cluster's certificate authority and the certificates it signs.

use capstan_x509::{self as x509, KeyUse, Signer, Template, pem};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{KeyPair, PrivateKey};
use crate::Error;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// CAs are backdated by this much to tolerate clock skew.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// A certificate authority with its key.
#[derive(Debug)]
pub struct Authority {
    certificate: Vec<u8>,
    key: PrivateKey,
}

impl Authority {
    /// A self-signed CA like upstream's: `CN=kubernetes`, path length 0.
    pub fn create(key: PrivateKey, days: i32, now: Timestamp) -> Result<Self, Error> {
        let subject = x509::name::<&str>(Some("kubernetes"), &[]);
        let public = key.public_key_info();
        let template = Template {
            serial: &serial(&public, &subject, now),
            not_before: now - BACKDATE,
            not_after: now + DAY * days,
            subject: &subject,
            public_key_info: &public,
            extensions: &[
                x509::key_usage(&[
                    KeyUse::DigitalSignature,
                    KeyUse::KeyEncipherment,
                    KeyUse::CertificateSignature,
                ]),
                x509::basic_constraints(true, Some(0)),
                x509::subject_key_id(&x509::key_id(&public)),
            ],
        };
        let certificate = template.signed(&subject, &key).ok_or(SIGNING_FAILED)?;
        Ok(Self { certificate, key })
    }

    /// A CA from its Secret. Of several certificates the first is used, as upstream does.
    pub fn from_pair(pair: &KeyPair) -> Result<Self, Error> {
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes())
            .map_err(|_| Error::Certificate("is not in the PEM text"))?
            .to_vec();
        let key = PrivateKey::from_pem(&pair.key)?;
        if parse(&certificate)?.public_key().raw != key.public_key_info() {
            return Err(Error::Certificate("and key do not belong together"));
        }
        Ok(Self { certificate, key })
    }

    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    pub(super) fn key_pem(&self) -> &str {
        self.key.to_pem()
    }

    /// Signs a client certificate for a key, valid for `days` from now.
    pub fn client_certificate(
        &self,
        key: &PrivateKey,
        name: &str,
        groups: &[&str],
        days: i32,
        now: Timestamp,
    ) -> Result<String, Error> {
        let own = parse(&self.certificate)?;
        let own_id = own.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        let own_id = own_id.unwrap_or_else(|| x509::key_id(&self.key.public_key_info()));
        let (not_before, _) = validity(&own)?;
        let subject = x509::name(Some(name), groups);
        let public = key.public_key_info();
        let template = Template {
            serial: &serial(&public, &subject, now),
            not_before,
            not_after: now + DAY * days,
            subject: &subject,
            public_key_info: &public,
            extensions: &[
                x509::key_usage(&[KeyUse::DigitalSignature, KeyUse::KeyEncipherment]),
                x509::extended_key_usage(&[x509::CLIENT_AUTH]),
                x509::authority_key_id(&own_id),
            ],
        };
        let certificate = template.signed(own.subject().as_raw(), &self.key).ok_or(SIGNING_FAILED)?;
        Ok(pem("CERTIFICATE", &certificate))
    }
}

const SIGNING_FAILED: Error = Error::Key("cannot sign");

/// A deterministic serial number, unique per key, subject and time.
fn serial(public_key_info: &[u8], subject: &[u8], now: Timestamp) -> [u8; 8] {
    let mut hash = Sha256::new();
    hash.update(public_key_info);
    hash.update(subject);
    hash.update(now.as_second().to_be_bytes());
    let digest = hash.finalize();
    let mut serial = [0; 8];
    serial.copy_from_slice(&digest[..8]);
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, Error> {
    X509Certificate::from_der(der).map(|(_, parsed)| parsed).map_err(|_| Error::Certificate("cannot be read"))
}

fn validity(certificate: &X509Certificate<'_>) -> Result<(Timestamp, Timestamp), Error> {
    let moment = |time: x509_parser::time::ASN1Time| {
        Timestamp::from_second(time.timestamp()).map_err(|_| Error::Certificate("has no readable validity"))
    };
    Ok((moment(certificate.validity().not_before)?, moment(certificate.validity().not_after)?))
}

/// Expiry of the first certificate in a PEM text.
pub fn expiry(certificate: &str) -> Result<Timestamp, Error> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes())
        .map_err(|_| Error::Certificate("is not in the PEM text"))?;
    Ok(validity(&parse(&der)?)?.1)
}

/// Expiry of a DER certificate; `None` if its common name differs.
pub fn expiry_of(der: &[u8], common_name: &str) -> Option<Timestamp> {
    let parsed = parse(der).ok()?;
    let named = parsed.subject().iter_common_name().any(|name| name.as_str() == Ok(common_name));
    named.then(|| validity(&parsed).ok()).flatten().map(|(_, end)| end)
}

/// CA hashes that joining nodes pin (`caCertHashes`), one per certificate in the PEM text.
pub fn ca_hashes(certificates: &str) -> Result<Vec<String>, Error> {
    let mut hashes = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(certificates.as_bytes()) {
        let der = certificate.map_err(|_| Error::Certificate("is not in the PEM text"))?;
        let digest = Sha256::digest(parse(&der)?.public_key().raw);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        hashes.push(format!("sha256:{hex}"));
    }
    if hashes.is_empty() {
        return Err(Error::Certificate("is not in the PEM text"));
    }
    Ok(hashes)
}
