//! A plain client of a running server, from a kubeconfig.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

/// What the current context of a kubeconfig says about reaching a server.
pub struct Kubeconfig {
    /// `https://127.0.0.1:6443`
    pub server: String,
    authority: Vec<u8>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
    token: Option<String>,
}

impl Kubeconfig {
    /// Reads a kubeconfig with a client certificate or a token.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let config: Value = serde_saphyr::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{} is no YAML: {error}", path.display()))?;
        Self::parse(&config, path.parent().unwrap_or(Path::new(".")))
            .with_context(|| format!("{} does not lead to a server", path.display()))
    }

    fn parse(config: &Value, folder: &Path) -> Result<Self> {
        let named = |list: &str, entry: &str, name: &Value| -> Result<Value> {
            let entries = config[list].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = entries.iter().find(|entry| entry["name"] == *name);
            Ok(found.with_context(|| format!("it has no {name} in {list}"))?[entry].clone())
        };
        let material = |holder: &Value, field: &str| -> Result<Option<Vec<u8>>> {
            if let Some(data) = holder[format!("{field}-data")].as_str() {
                let bytes = STANDARD.decode(data).with_context(|| format!("{field}-data is no base64"))?;
                return Ok(Some(bytes));
            }
            let Some(file) = holder[field].as_str() else { return Ok(None) };
            let path = folder.join(file);
            let bytes = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            Ok(Some(bytes))
        };
        let context = named("contexts", "context", &config["current-context"])?;
        let cluster = named("clusters", "cluster", &context["cluster"])?;
        let user = named("users", "user", &context["user"])?;
        let server = cluster["server"].as_str().context("its cluster has no server")?;
        Ok(Self {
            server: server.trim_end_matches('/').to_owned(),
            authority: material(&cluster, "certificate-authority")?
                .context("its cluster has no certificate-authority")?,
            certificate: material(&user, "client-certificate")?.zip(material(&user, "client-key")?),
            token: user["token"].as_str().map(str::to_owned),
        })
    }

    fn tls(&self) -> Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authority) {
            roots.add(certificate.context("the certificate authority cannot be read")?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let Some((certificate, key)) = &self.certificate else { return Ok(builder.with_no_client_auth()) };
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.context("the client certificate cannot be read")?;
        let key = PrivateKeyDer::from_pem_slice(key).context("the client key cannot be read")?;
        Ok(builder.with_client_auth_cert(chain, key)?)
    }
}

/// A connection to a server.
pub struct Client {
    server: String,
    token: Option<String>,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Client {
    /// Connects when it is first used.
    pub fn new(config: &Kubeconfig) -> Result<Self> {
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config.tls()?).https_only().enable_http1().build();
        Ok(Self {
            server: config.server.clone(),
            token: config.token.clone(),
            http: legacy::Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    /// Sends one request with a JSON body, or none.
    pub async fn send(&self, method: Method, path: &str, body: String) -> Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.server));
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        self.http.request(request).await.with_context(|| format!("{} cannot be reached", self.server))
    }
}
