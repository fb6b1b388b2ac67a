//! TLS towards etcd: a client certificate that the cluster's etcd CA signs, and a check that the server's certificate
//! comes from the same CA.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

use crate::Error;
use crate::certificates::{Authority, KeyPair, PrivateKey, Seed};

/// TLS configuration of the client.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(super) tls: Arc<rustls::ClientConfig>,
}

impl Credentials {
    /// Issues a client certificate signed by etcd's CA, valid for a day. Without the CA's key, the user's `client`
    /// certificate is used.
    pub fn issue(
        authority: &KeyPair,
        client: Option<&KeyPair>,
        seed: &Seed,
        now: Timestamp,
    ) -> Result<KeyPair, Error> {
        if authority.key.is_empty() {
            return client.cloned().ok_or(Error::Key("of etcd's authority is missing, and so is a client's"));
        }
        let key = PrivateKey::from_seed(EncryptionAlgorithmType::EcdsaP256, &seed.derive("etcd-client"))?;
        let signer = Authority::from_pair(authority)?;
        let certificate = signer.client_certificate(&key, "capstan", &[], 1, now)?;
        Ok(KeyPair { certificate, key: key.to_pem().to_owned() })
    }

    /// Presents `own` to servers with a certificate of the CA.
    pub fn new(authority: &KeyPair, own: &KeyPair, now: Timestamp) -> Result<Self, Error> {
        let unreadable = |_| Error::Certificate("cannot be read");
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.certificate.as_bytes()) {
            let certificate = certificate.map_err(unreadable)?;
            roots.add(certificate).map_err(|_| Error::Certificate("is not an authority"))?;
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(own.certificate.as_bytes()).collect();
        let chain = chain.map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())
            .map_err(|_| Error::Key("there is none in the PEM text"))?;
        let unusable = |_| Error::Certificate("cannot be used for TLS");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|_| Error::Certificate("cannot be used for TLS"))?;
        let mut tls = rustls::ClientConfig::builder_with_details(provider, Arc::new(FixedTime(now)))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServerName(verifier)))
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(Self { tls: Arc::new(tls) })
    }
}

/// The observed time, so that simulations verify certificates by simulated time.
#[derive(Debug)]
struct FixedTime(Timestamp);

impl rustls::time_provider::TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Requires a certificate of the CA, for any name.
#[derive(Debug)]
struct AnyServerName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyServerName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            state => state,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
