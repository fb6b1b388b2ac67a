//! Mutual TLS with a test bed's certificates.

use std::sync::Arc;

use anyhow::Result;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::bed::pki::Pki;

fn authority(pki: &Pki) -> Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pki.read("ca.crt")?)?)?;
    Ok(Arc::new(roots))
}

fn identity(pki: &Pki, name: &str) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificate = CertificateDer::from_pem_slice(&pki.read(&format!("{name}.crt"))?)?;
    Ok((vec![certificate], PrivateKeyDer::from_pem_slice(&pki.read(&format!("{name}.key"))?)?))
}

/// A client configuration, with or without a client certificate.
pub fn client(pki: &Pki, with_certificate: bool) -> Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder().with_root_certificates(authority(pki)?);
    Ok(Arc::new(if with_certificate {
        let (chain, key) = identity(pki, "admin")?;
        builder.with_client_auth_cert(chain, key)?
    } else {
        builder.with_no_client_auth()
    }))
}

/// A server configuration that requires client certificates.
pub fn server(pki: &Pki) -> Result<Arc<ServerConfig>> {
    let verifier = WebPkiClientVerifier::builder(authority(pki)?).build()?;
    let (chain, key) = identity(pki, "server")?;
    Ok(Arc::new(ServerConfig::builder().with_client_cert_verifier(verifier).with_single_cert(chain, key)?))
}
