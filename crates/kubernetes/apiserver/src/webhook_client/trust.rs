//! Verification of webhook certificates.

use std::sync::Arc;

use capstan_env::Env;
use capstan_pki::{provider, tls_time, valid_at};
use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::identity::Identity;

/// TLS for calls to webhooks, with the CAs of a PEM bundle, or of the operating system if it is empty. Errors have
/// upstream's text.
pub(super) fn tls_config(
    ca_bundle: &[u8],
    identity: Option<&Identity>,
    env: &Env,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_details(provider(), tls_time(env))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match ca_bundle {
        [] => builder.with_native_roots().map_err(|error| error.to_string())?,
        bundle => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier(bundle)?)),
    };
    let Some(identity) = identity else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = identity.parsed()?;
    builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
}

pub(super) fn verifier(ca_bundle: &[u8]) -> Result<Bundle, String> {
    let bundle: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(ca_bundle).filter_map(Result::ok).collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(bundle.iter().cloned());
    if added == 0 {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Bundle { chains, bundle })
}

/// Trusts what chains to the bundle, and certificates in the bundle itself: self-signed serving certificates are
/// common with webhooks, and Go accepts them.
#[derive(Debug)]
pub(super) struct Bundle {
    chains: Arc<WebPkiServerVerifier>,
    bundle: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.chains.verify_server_cert(leaf, intermediates, name, ocsp, now);
        if verdict.is_ok() || !self.bundle.iter().any(|own| own == leaf) {
            return verdict;
        }
        verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
        match valid_at(leaf, now) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::Expired.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// A TLS error with Go's text.
pub(super) fn describe(error: &Error) -> String {
    let Error::InvalidCertificate(certificate) = error else { return format!("remote error: tls: {error}") };
    let why = match certificate {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "x509: certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => wrong_name(expected, presented),
        other => format!("x509: {other}"),
    };
    format!("tls: failed to verify certificate: {why}")
}

fn wrong_name(expected: &ServerName<'static>, presented: &[String]) -> String {
    // rustls shows the kind of each name: `DnsName("a")`, `IpAddress(127.0.0.1)`.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let is_address = |name: &&String| name.starts_with("IpAddress");
    let expected_text = expected.to_str();
    match expected {
        ServerName::IpAddress(_) => {
            let addresses: Vec<String> = presented.iter().filter(is_address).map(bare).collect();
            match addresses.is_empty() {
                true => format!(
                    "x509: cannot validate certificate for {expected_text} because it doesn't contain any IP SANs"
                ),
                false => {
                    format!("x509: certificate is valid for {}, not {expected_text}", addresses.join(", "))
                }
            }
        }
        _ => {
            let names: Vec<String> = presented.iter().filter(|name| !is_address(name)).map(bare).collect();
            match names.is_empty() {
                true => format!(
                    "x509: certificate is not valid for any names, but wanted to match {expected_text}"
                ),
                false => format!("x509: certificate is valid for {}, not {expected_text}", names.join(", ")),
            }
        }
    }
}
