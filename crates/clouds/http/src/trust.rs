//! Whose certificates are believed.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Which servers are believed to be who they say.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// Those that the operating system's authorities vouch for.
    #[default]
    System,
    /// Those that these authorities vouch for, in PEM, and no others.
    Bundle(Vec<u8>),
    /// All: `verify-ssl: "false"` of CloudStack, `verify: false` of OpenStack. Whoever is on the way reads everything and may answer in the server's place.
    Anyone,
}

/// Trust that cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// There is no certificate in the bundle, or one that cannot be read.
    #[error("the CA bundle holds no usable certificate")]
    Bundle,
    /// The operating system has no authorities.
    #[error("the system's CA certificates cannot be read: {0}")]
    System(String),
    /// The TLS library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

pub(crate) fn tls(trust: &Trust) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TrustError::Tls(error.to_string()))?;
    let builder = match trust {
        Trust::System => {
            builder.with_native_roots().map_err(|error| TrustError::System(error.to_string()))?
        }
        Trust::Bundle(pem) => builder.with_root_certificates(roots(pem)?),
        Trust::Anyone => {
            let verifier = Arc::new(Anyone(provider));
            return Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
        }
    };
    Ok(builder.with_no_client_auth())
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| TrustError::Bundle)?).map_err(|_| TrustError::Bundle)?;
    }
    if roots.is_empty() {
        return Err(TrustError::Bundle);
    }
    Ok(roots)
}

/// Believes every certificate, and still checks that the server holds its key.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
