//! The kubeconfig of a webhook: where it is, whom it trusts, and as whom it is called.

use std::path::{Path, PathBuf};

use http::{HeaderValue, Uri};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

/// Largest kubeconfig in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Why a webhook cannot be used. Names the field, never a credential.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not a kubeconfig in YAML", path.display())]
    Syntax { path: PathBuf },
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
    #[error("no thread for the audit webhook can be started")]
    Thread(#[source] std::io::Error),
}

fn refused<T>(field: &str, problem: impl Into<String>) -> Result<T, WebhookError> {
    Err(WebhookError::Field { field: field.to_owned(), problem: problem.into() })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    #[serde(default)]
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: PathBuf,
    certificate_authority_data: String,
    insecure_skip_tls_verify: bool,
    tls_server_name: String,
    proxy_url: String,
}

#[derive(Deserialize)]
struct NamedUser {
    #[serde(default)]
    name: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: PathBuf,
    client_certificate_data: String,
    client_key: PathBuf,
    client_key_data: String,
    token: String,
    #[serde(rename = "tokenFile")]
    token_file: PathBuf,
    username: String,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct NamedContext {
    #[serde(default)]
    name: String,
    context: Context,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

/// How a webhook is called.
pub(super) struct Endpoint {
    pub uri: Uri,
    pub connector: HttpsConnector<HttpConnector>,
    pub authorization: Option<HeaderValue>,
}

impl Endpoint {
    pub fn read(path: &Path) -> Result<Self, WebhookError> {
        let failed = |source| WebhookError::Read { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(failed)?.len() > MAX_BYTES {
            return Err(WebhookError::Syntax { path: path.to_owned() });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let file: File =
            serde_saphyr::from_str(&text).map_err(|_| WebhookError::Syntax { path: path.to_owned() })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let (cluster, user) = file.chosen()?;
        let Ok(uri) = cluster.server.parse::<Uri>() else {
            return refused("clusters[].cluster.server", "must be a URL such as https://host:port/path");
        };
        if !["https", "http"].contains(&uri.scheme_str().unwrap_or_default()) || uri.host().is_none() {
            return refused("clusters[].cluster.server", "must be a URL such as https://host:port/path");
        }
        if cluster.insecure_skip_tls_verify {
            return refused(
                "clusters[].cluster.insecure-skip-tls-verify",
                "is not supported, because events have bodies of requests: use certificate-authority",
            );
        }
        if !cluster.proxy_url.is_empty() {
            return refused("clusters[].cluster.proxy-url", "is not supported");
        }
        let connector = connector(&cluster, &user, folder)?;
        Ok(Self { uri, connector, authorization: user.authorization(folder)? })
    }
}

impl File {
    /// The cluster and the user of the current context, or the only ones.
    fn chosen(self) -> Result<(Cluster, User), WebhookError> {
        let Self { clusters, users, contexts, current_context } = self;
        let context = contexts.into_iter().find(|it| it.name == current_context).map(|it| it.context);
        if context.is_none() && !current_context.is_empty() {
            return refused("current-context", "names no context");
        }
        let named = |name: &str, wanted: Option<&str>| wanted.is_none_or(|wanted| name == wanted);
        let (of_cluster, of_user) = match &context {
            Some(context) => (Some(context.cluster.as_str()), Some(context.user.as_str())),
            None => (None, None),
        };
        let cluster = clusters.into_iter().find(|it| named(&it.name, of_cluster)).map(|it| it.cluster);
        let Some(cluster) = cluster else { return refused("clusters", "has no cluster of the context") };
        let user = users.into_iter().find(|it| named(&it.name, of_user)).and_then(|it| it.user);
        if user.is_none() && of_user.is_some_and(|name| !name.is_empty()) {
            return refused("users", "has no user of the context");
        }
        Ok((cluster, user.unwrap_or_default()))
    }
}

impl User {
    fn authorization(&self, folder: &Path) -> Result<Option<HeaderValue>, WebhookError> {
        if self.exec.is_some() || self.auth_provider.is_some() || !self.username.is_empty() {
            return refused("users[].user", "must have a client certificate or a token");
        }
        let token = if !self.token.is_empty() {
            self.token.clone()
        } else if !self.token_file.as_os_str().is_empty() {
            let path = folder.join(&self.token_file);
            let text = std::fs::read_to_string(&path);
            text.map_err(|source| WebhookError::Read { path, source })?.trim().to_owned()
        } else {
            return Ok(None);
        };
        let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}")) else {
            return refused("users[].user.token", "has characters that no token has");
        };
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// What a field has: data in base64, or the content of a file.
fn pem(field: &str, data: &str, file: &Path, folder: &Path) -> Result<Option<Vec<u8>>, WebhookError> {
    use base64::Engine as _;
    if !data.is_empty() {
        return match base64::engine::general_purpose::STANDARD.decode(data) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) => refused(&format!("{field}-data"), "is not base64"),
        };
    }
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let path = folder.join(file);
    std::fs::read(&path).map(Some).map_err(|source| WebhookError::Read { path, source })
}

fn connector(
    cluster: &Cluster,
    user: &User,
    folder: &Path,
) -> Result<HttpsConnector<HttpConnector>, WebhookError> {
    const CA: &str = "clusters[].cluster.certificate-authority";
    const CERTIFICATE: &str = "users[].user.client-certificate";
    const KEY: &str = "users[].user.client-key";
    let config = ClientConfig::builder_with_provider(capstan_pki::provider())
        .with_safe_default_protocol_versions()
        .or_else(|error| refused("TLS", error.to_string()))?;
    let authority = pem(CA, &cluster.certificate_authority_data, &cluster.certificate_authority, folder)?;
    let config = match authority {
        None => config.with_native_roots().or_else(|error| refused(CA, error.to_string()))?,
        Some(text) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let added = certificate.map(|certificate| roots.add(certificate));
                if !matches!(added, Ok(Ok(()))) {
                    return refused(CA, "has a certificate that cannot be read");
                }
            }
            if roots.is_empty() {
                return refused(CA, "contains no certificate");
            }
            config.with_root_certificates(roots)
        }
    };
    let certificate = pem(CERTIFICATE, &user.client_certificate_data, &user.client_certificate, folder)?;
    let key = pem(KEY, &user.client_key_data, &user.client_key, folder)?;
    let config = match (certificate, key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
            let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(&key)) else {
                return refused("users[].user", "has a client certificate or key that cannot be read");
            };
            config
                .with_client_auth_cert(chain, key)
                .or_else(|_| refused(KEY, "does not fit the client certificate"))?
        }
        _ => return refused("users[].user", "must have both client-certificate and client-key, or neither"),
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    if cluster.tls_server_name.is_empty() {
        return Ok(builder.enable_http1().build());
    }
    let Ok(name) = rustls_pki_types::ServerName::try_from(cluster.tls_server_name.clone()) else {
        return refused("clusters[].cluster.tls-server-name", "is not a host name");
    };
    Ok(builder
        .with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name))
        .enable_http1()
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_refused_by_field() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhook.kubeconfig");
        let cases = [
            ("clusters: []", "clusters: has no cluster"),
            ("clusters: [{cluster: {server: nowhere}}]", "clusters[].cluster.server: must be a URL"),
            (
                "clusters: [{cluster: {server: 'https://a', insecure-skip-tls-verify: true}}]",
                "clusters[].cluster.insecure-skip-tls-verify: is not supported",
            ),
            (
                "clusters: [{cluster: {server: 'https://a', certificate-authority-data: aGVsbG8=}}]",
                "clusters[].cluster.certificate-authority: contains no certificate",
            ),
            (
                "clusters: [{cluster: {server: 'http://a'}}]\ncurrent-context: b",
                "current-context: names no context",
            ),
            (
                "clusters: [{cluster: {server: 'http://a'}}]\nusers: [{user: {exec: {command: sh}}}]",
                "users[].user: must have a client certificate or a token",
            ),
            (
                "clusters: [{cluster: {server: 'http://a'}}]\nusers: [{user: {client-certificate-data: aGVsbG8=}}]",
                "users[].user: must have both",
            ),
        ];
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let error = Endpoint::read(&path).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
