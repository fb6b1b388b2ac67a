//! TLS of the front door: the serving certificate, renewed while serving, and client certificates.
//!
//! A client certificate is asked for and taken whatever it says, as kube-apiserver does; whether it names a
//! user is decided per request, from [`PeerIdentity`]. So a client with a foreign certificate and a good token
//! gets in, and one with nothing else gets 401 rather than a broken handshake.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};

use super::{Credential, Leaf, Pki, PkiError, certificate};

impl Pki {
    /// What a TLS server under these host names and addresses needs. HTTP/2 is preferred to HTTP/1.1.
    pub fn server_config(self: &Arc<Self>, names: &[String]) -> Result<Arc<ServerConfig>, PkiError> {
        let resolver = Serving { pki: self.clone(), names: names.to_vec(), current: Mutex::new(None) };
        // Fails now rather than at the first handshake.
        resolver.certified()?;
        self.server_config_by(Arc::new(resolver))
    }

    /// What a TLS server with a certificate of its own needs, such as one of several servers of a cluster.
    pub fn server_config_with(&self, serving: &Credential) -> Result<Arc<ServerConfig>, PkiError> {
        let key = rustls::crypto::ring::sign::any_supported_type(&serving.key.to_rustls())?;
        let certified = CertifiedKey::new(vec![serving.certificate.clone()], key);
        let mut config = self.server_config_by(Arc::new(SingleCertAndKey::from(certified)))?;
        forget_sessions(Arc::make_mut(&mut config));
        Ok(config)
    }

    fn server_config_by(&self, resolver: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, PkiError> {
        let mut config = ServerConfig::builder_with_details(provider(), tls_time(&self.env))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyClientCertificate(self.client_verifier()?)))
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Verifies that a client certificate was signed by our authority.
    pub fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority()?.credential().certificate.clone())?;
        Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build()?)
    }

    /// Who a connection's client is, by its certificate chain, the leaf first. None without a chain.
    pub fn peer(&self, chain: &[CertificateDer<'_>]) -> Option<PeerIdentity> {
        let (leaf, intermediates) = chain.split_first()?;
        let verified = self.client_verifier().map_err(|error| error.to_string()).and_then(|verifier| {
            let now = unix_time(self.env.now());
            let verdict = verifier.verify_client_cert(leaf, intermediates, now);
            verdict.map_err(|error| format!("verifying certificate failed: {error}"))
        });
        let subject = verified.and_then(|_| subject(leaf).map_err(|error| error.to_string()));
        let (not_before, not_after) = certificate::validity(leaf).unwrap_or((Timestamp::MIN, Timestamp::MIN));
        Some(PeerIdentity { subject, not_before, not_after })
    }
}

/// Has a TLS server keep nothing of past sessions: clients of one server among thousands keep their connections, and
/// room for sessions is set aside before there are any.
pub fn forget_sessions(config: &mut ServerConfig) {
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
}

/// Who a verified certificate stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Common name: the name of a user.
    pub name: String,
    /// Organizations: the groups of a user.
    pub groups: Vec<String>,
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
}

/// Who the client of a connection is by its certificate, decided once per connection.
#[derive(Debug, Clone)]
pub struct PeerIdentity {
    subject: Result<Option<Subject>, String>,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl PeerIdentity {
    /// The subject at a moment; none if the certificate names none, an error if it cannot be trusted.
    pub fn subject(&self, now: Timestamp) -> Result<Option<&Subject>, String> {
        if now < self.not_before || now > self.not_after {
            return Err("x509: certificate has expired or is not yet valid".into());
        }
        self.subject.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

fn subject(leaf: &CertificateDer<'_>) -> Result<Option<Subject>, PkiError> {
    let parsed = certificate::parse(leaf)?;
    let texts = |values: &mut dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>>| {
        values.filter_map(|value| value.as_str().ok().map(str::to_owned)).collect::<Vec<_>>()
    };
    let subject = parsed.subject();
    // Go keeps the last common name if there are several.
    let Some(name) = texts(&mut subject.iter_common_name()).pop().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let fingerprint: String = Sha256::digest(leaf).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(Subject { name, groups: texts(&mut subject.iter_organization()), fingerprint }))
}

/// The clock of TLS, from the environment.
pub fn tls_time(env: &Env) -> Arc<dyn TimeProvider> {
    Arc::new(Clock(env.clone()))
}

struct Clock(Env);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(self.0.now()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

fn unix_time(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap_or_default()))
}

/// Whether a certificate is valid at a moment.
pub fn valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    certificate::validity(certificate)
        .is_ok_and(|(from, to)| (from.as_second()..=to.as_second()).contains(&now))
}

/// The cryptography that all TLS here uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The serving certificate, renewed when a third of its lifetime is left.
struct Serving {
    pki: Arc<Pki>,
    names: Vec<String>,
    current: Mutex<Option<(Arc<CertifiedKey>, Timestamp)>>,
}

impl Serving {
    fn certified(&self) -> Result<Arc<CertifiedKey>, PkiError> {
        let mut current = self.current.lock();
        if let Some((certified, renew_at)) = &*current
            && self.pki.env.now() < *renew_at
        {
            return Ok(certified.clone());
        }
        let credential = self.pki.credential("server", &Leaf::Server { names: self.names.clone() })?;
        let key = rustls::crypto::ring::sign::any_supported_type(&credential.key.to_rustls())?;
        let certified = Arc::new(CertifiedKey::new(vec![credential.certificate.clone()], key));
        *current = Some((certified.clone(), credential.renew_at()?));
        Ok(certified)
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certified().inspect_err(|error| tracing::error!(%error, "no serving certificate")).ok()
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Takes any client certificate whose key the client holds.
#[derive(Debug)]
struct AnyClientCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
