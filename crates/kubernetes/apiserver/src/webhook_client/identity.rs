//! The certificate that a client presents to servers.

use std::path::{Path, PathBuf};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A client certificate and its key in PEM files. They are read for each call, so that they may be renewed.
#[derive(Debug, Clone)]
pub struct IdentityFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the files have.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl IdentityFiles {
    /// The files must be readable now, and fit each other.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, String> {
        let files = Self { certificate: certificate.to_owned(), key: key.to_owned() };
        let (chain, key) = files.read()?.parsed()?;
        rustls::sign::CertifiedKey::from_der(chain, key, &capstan_pki::provider()).map_err(|error| {
            format!("{} and {} do not fit: {error}", files.certificate.display(), files.key.display())
        })?;
        Ok(files)
    }

    pub(super) fn read(&self) -> Result<Identity, String> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
        };
        Ok(Identity { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }
}

impl Identity {
    /// The chain, the leaf first, and the key.
    pub(super) fn parsed(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let unreadable = |what: &str| format!("the client {what} is not PEM");
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| unreadable("certificate"))?;
        if chain.is_empty() {
            return Err(unreadable("certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| unreadable("key"))?;
        Ok((chain, key))
    }
}
