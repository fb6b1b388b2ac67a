//! A small Kubernetes client for suites. It caches and retries nothing, so a suite sees exactly what the server sent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use crate::bed::kubeconfig::{self, Access};

/// Timeout of every request except watches. It ends a request that hangs; many at once on a busy machine take a minute.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Content types of request bodies.
pub mod content {
    pub const JSON: &str = "application/json";
    pub const MERGE_PATCH: &str = "application/merge-patch+json";
    pub const JSON_PATCH: &str = "application/json-patch+json";
}

/// A client of one server. Clones share connections.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON ({}): {}", self.status, String::from_utf8_lossy(&self.body)))
    }

    /// The body of a 2xx response. Any other status is an error with the server's message.
    pub fn success(self) -> Result<Value> {
        let body = self.json()?;
        if !self.status.is_success() {
            bail!("{}: {}", self.status, body["message"].as_str().unwrap_or("no message"));
        }
        Ok(body)
    }

    /// Texts of the `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        self.headers
            .get_all("warning")
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }
}

/// HTTP versions that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    Both,
    One,
}

impl Api {
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        Self::new(&kubeconfig::read(path)?, Http::Both)
    }

    pub fn new(access: &Access, http: Http) -> Result<Self> {
        Ok(Self::with_tls(access, tls_config(access)?, http))
    }

    /// A client without a certificate.
    pub fn anonymous(access: &Access) -> Result<Self> {
        Ok(Self::with_tls(access, tls_builder(&access.authority_pem)?.with_no_client_auth(), Http::Both))
    }

    fn with_tls(access: &Access, tls: ClientConfig, http: Http) -> Self {
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = match http {
            Http::Both => tls.enable_http1().enable_http2().wrap_connector(tcp),
            Http::One => tls.enable_http1().wrap_connector(tcp),
        };
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { base: access.url.trim_end_matches('/').to_owned(), client }
    }

    /// A client without credentials of a server that is not a test bed's.
    pub fn without_credentials(url: &str, authority_pem: &[u8]) -> Result<Self> {
        let tls = tls_builder(authority_pem)?.with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { base: url.trim_end_matches('/').to_owned(), client })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>> {
        let uri: Uri = format!("{}{path}", self.base).parse().with_context(|| path.to_owned())?;
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.body(Full::new(body))?)
    }

    /// Sends a request and reads the complete response.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply> {
        let what = format!("{method} {path}");
        let request = self.request(method, path, headers, body)?;
        let answer = async {
            let response = self.client.request(request).await.map_err(|error| anyhow!(error))?;
            let (parts, incoming) = response.into_parts();
            let body = incoming.collect().await?.to_bytes();
            anyhow::Ok(Reply { status: parts.status, headers: parts.headers, body })
        };
        tokio::time::timeout(TIMEOUT, answer)
            .await
            .map_err(|_| anyhow!("no response within {TIMEOUT:?}"))?
            .context(what)
    }

    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Result<Reply> {
        self.send(Method::POST, path, &[("content-type", content::JSON)], Bytes::from(object.to_string()))
            .await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Result<Reply> {
        self.send(Method::PUT, path, &[("content-type", content::JSON)], Bytes::from(object.to_string()))
            .await
    }

    pub async fn patch(&self, path: &str, kind: &str, object: &Value) -> Result<Reply> {
        self.send(Method::PATCH, path, &[("content-type", kind)], Bytes::from(object.to_string())).await
    }

    pub async fn delete(&self, path: &str) -> Result<Reply> {
        self.send(Method::DELETE, path, &[], Bytes::new()).await
    }

    /// Opens a watch. `path` includes the query.
    pub async fn watch(&self, path: &str) -> Result<Events> {
        let response = self.client.request(self.request(Method::GET, path, &[], Bytes::new())?).await?;
        if !response.status().is_success() {
            bail!("watch {path}: {}", response.status());
        }
        Ok(Events { body: response.into_body(), buffer: BytesMut::new() })
    }
}

/// The event stream of a watch.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    buffer: BytesMut,
}

impl Events {
    /// The next event as bytes, or `None` when the server closed the stream.
    pub async fn next_line(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1).freeze();
                return Ok(Some(line.slice(..end)));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    pub async fn next(&mut self) -> Result<Option<Value>> {
        self.next_line().await?.map(|line| serde_json::from_slice(&line).context("watch event")).transpose()
    }
}

fn roots(authority_pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority_pem) {
        roots.add(certificate.map_err(|error| anyhow!("certificate authority: {error:?}"))?)?;
    }
    Ok(roots)
}

/// TLS with the server's CA.
fn tls_builder(authority_pem: &[u8]) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(authority_pem)?))
}

/// TLS with the server's CA and the user's client certificate.
pub fn tls_config(access: &Access) -> Result<ClientConfig> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&access.certificate_pem).collect();
    let chain = chain.map_err(|error| anyhow!("client certificate: {error:?}"))?;
    let key =
        PrivateKeyDer::from_pem_slice(&access.key_pem).map_err(|error| anyhow!("client key: {error:?}"))?;
    Ok(tls_builder(&access.authority_pem)?.with_client_auth_cert(chain, key)?)
}
