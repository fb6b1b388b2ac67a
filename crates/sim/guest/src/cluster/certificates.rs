//! `/etc/kubernetes/pki` of a machine, as its API server and etcd use it.

use std::sync::Arc;

use capstan_apiserver::env::Env;
use capstan_apiserver::pki::{Authority, Credential, Pki, PkiError, PrivateKey};
use rustls::ServerConfig;

use crate::request::{Files, KubeadmError};

/// A file as text.
pub(super) fn text<'a>(pki: &'a Files, path: &str) -> Result<&'a str, KubeadmError> {
    let missing = || {
        failed(format!(
            "failed to load certificate: open /etc/kubernetes/pki/{path}: no such file or directory"
        ))
    };
    let bytes = pki.get(path).ok_or_else(missing)?;
    std::str::from_utf8(bytes).map_err(|_| failed(format!("/etc/kubernetes/pki/{path}: no PEM")))
}

/// A certificate with its key, by the path without `.crt` and `.key`.
pub(super) fn credential(pki: &Files, path: &str) -> Result<Credential, KubeadmError> {
    let (certificate, key) = (text(pki, &format!("{path}.crt"))?, text(pki, &format!("{path}.key"))?);
    Credential::from_pem(certificate, key).map_err(|error| unusable(path, &error))
}

/// The authority and the token key of a cluster.
pub(super) fn cluster_pki(pki: &Files, env: &Env) -> Result<Arc<Pki>, KubeadmError> {
    let authority = Authority::new(credential(pki, "ca")?);
    let token_key = PrivateKey::from_pem(text(pki, "sa.key")?).map_err(|error| unusable("sa", &error))?;
    Ok(Arc::new(Pki::given(authority, token_key, env.clone())))
}

/// How the API server of a machine serves.
pub(super) fn serving(pki: &Arc<Pki>, files: &Files) -> Result<Arc<ServerConfig>, KubeadmError> {
    let credential = credential(files, "apiserver")?;
    pki.server_config_with(&credential).map_err(|error| unusable("apiserver", &error))
}

fn unusable(path: &str, error: &PkiError) -> KubeadmError {
    failed(format!("failure loading {path} certificate: {error}"))
}

fn failed(why: String) -> KubeadmError {
    KubeadmError { phase: "certs", why }
}
