//! HTTP over TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_apiserver::env::Env;
use capstan_apiserver::pki::tls_time;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::credential::{Credential, Credentials};
use super::{Access, Dial, KubeconfigError};
use crate::client::{Body, Transport, TransportError};
use crate::workload::Stream;

/// How long a server that is asked whether it is there may take to say so; client-go's time.
const ANSWER: Duration = Duration::from_secs(15);

/// A server reached over TLS.
pub struct Remote {
    access: Access,
    dial: Arc<dyn Dial>,
    env: Env,
    roots: Arc<rustls::RootCertStore>,
    tls: Arc<rustls::ClientConfig>,
    server_name: ServerName<'static>,
    credentials: Credentials,
    /// The connection that everything shares, if the server speaks HTTP/2.
    shared: Mutex<Option<Shared>>,
}

struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    /// The certificate it was opened with, if that may change.
    generation: Option<u64>,
}

impl Remote {
    /// Prepares to reach a server; connects when first used. Certificates are judged by the time of `env`.
    pub fn new(access: Access, dial: Arc<dyn Dial>, env: &Env) -> Result<Self, KubeconfigError> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&access.authorities) {
            let certificate = certificate.map_err(|_| KubeconfigError::Bad("certificate-authority-data"))?;
            roots.add(certificate).map_err(|_| KubeconfigError::Bad("certificate-authority-data"))?;
        }
        let roots = Arc::new(roots);
        let tls = Arc::new(configure(&roots, env, access.identity.as_ref())?);
        let name = access.server_name.clone().unwrap_or_else(|| access.host.clone());
        let server_name = ServerName::try_from(name).map_err(|_| KubeconfigError::Bad("server"))?;
        let credentials = Credentials::new(access.authorization.clone(), env);
        let (env, shared) = (env.clone(), Mutex::new(None));
        Ok(Self { access, dial, env, roots, tls, server_name, credentials, shared })
    }

    /// What to present now.
    pub(super) async fn credential(&self) -> io::Result<Arc<Credential>> {
        self.credentials.current().await.map_err(io::Error::other)
    }

    /// A fresh TLS connection.
    pub(super) async fn connect(
        &self,
        credential: &Credential,
        http1_only: bool,
    ) -> io::Result<TlsStream<Box<dyn Stream>>> {
        let stream = self.dial.dial(&self.access.host, self.access.port).await?;
        let mut tls = self.tls.clone();
        if credential.identity.is_some() {
            let config = configure(&self.roots, &self.env, credential.identity.as_ref());
            tls = Arc::new(config.map_err(io::Error::other)?);
        }
        if http1_only {
            let mut config = (*tls).clone();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            tls = Arc::new(config);
        }
        TlsConnector::from(tls).connect(self.server_name.clone(), stream).await
    }

    /// Turns a path into what this server wants to see.
    pub(super) fn address<B>(
        &self,
        request: &mut Request<B>,
        credential: &Credential,
        absolute: bool,
    ) -> Result<(), TransportError> {
        let never = |message: String| TransportError { message, never_sent: true };
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let authority = self.access.authority();
        let path = format!("{}{path}", self.access.prefix);
        let uri = if absolute { format!("https://{authority}{path}") } else { path };
        *request.uri_mut() = uri.parse::<Uri>().map_err(|error| never(error.to_string()))?;
        let headers = request.headers_mut();
        if !absolute {
            let host = HeaderValue::from_str(&authority).map_err(|error| never(error.to_string()))?;
            headers.insert(header::HOST, host);
        }
        if let Some(authorization) = &credential.authorization {
            let mut value = HeaderValue::from_str(authorization)
                .map_err(|_| never("the token is no header value".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(())
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Body>, TransportError> {
        let never =
            |error: &dyn std::fmt::Display| TransportError { message: error.to_string(), never_sent: true };
        let credential = self.credential().await.map_err(|error| never(&error))?;
        let generation = credential.identity.as_ref().map(|_| credential.generation);
        let mut shared = self.shared.lock().await;
        if shared.as_ref().is_none_or(|open| open.sender.is_closed() || open.generation != generation) {
            *shared = None;
            let stream = self.connect(&credential, false).await.map_err(|error| never(&error))?;
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                drop(shared);
                return self.over_http1(stream, request, &credential).await;
            }
            let mut builder = http2::Builder::new(TokioExecutor::new());
            if let Some(interval) = self.dial.ask_every(&self.access.host, self.access.port) {
                // A watch on a connection that died without a word would wait for ever.
                builder.timer(TokioTimer::new()).keep_alive_interval(interval).keep_alive_timeout(ANSWER);
            }
            let (sender, connection) =
                builder.handshake(TokioIo::new(stream)).await.map_err(|error| never(&error))?;
            tokio::spawn(connection);
            *shared = Some(Shared { sender, generation });
        }
        let Some(mut sender) = shared.as_ref().map(|open| open.sender.clone()) else {
            return Err(never(&"not connected"));
        };
        drop(shared);
        self.address(&mut request, &credential, true)?;
        sender.ready().await.map_err(|error| never(&error))?;
        let sent = sender.send_request(request).await;
        self.answered(sent, &credential).await
    }

    async fn answered(
        &self,
        sent: Result<Response<hyper::body::Incoming>, hyper::Error>,
        credential: &Credential,
    ) -> Result<Response<Body>, TransportError> {
        let response = sent.map_err(|error| TransportError::ambiguous(error.to_string()))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.credentials.refused(credential).await;
        }
        Ok(response.map(Body::new))
    }

    async fn over_http1(
        &self,
        stream: TlsStream<Box<dyn Stream>>,
        mut request: Request<Full<Bytes>>,
        credential: &Credential,
    ) -> Result<Response<Body>, TransportError> {
        let never =
            |error: &dyn std::fmt::Display| TransportError { message: error.to_string(), never_sent: true };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| never(&error))?;
        tokio::spawn(connection);
        self.address(&mut request, credential, false)?;
        let sent = sender.send_request(request).await;
        self.answered(sent, credential).await
    }
}

/// How TLS is spoken. Certificates are judged by the time of `env`.
fn configure(
    roots: &Arc<rustls::RootCertStore>,
    env: &Env,
    identity: Option<&(Vec<u8>, Vec<u8>)>,
) -> Result<rustls::ClientConfig, KubeconfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_details(provider, tls_time(env))
        .with_safe_default_protocol_versions()
        .map_err(|_| KubeconfigError::Bad("TLS configuration"))?
        .with_root_certificates(roots.clone());
    let mut tls = match identity {
        Some((chain, key)) => {
            let bad = |_| KubeconfigError::Bad("client certificate");
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
            let key = PrivateKeyDer::from_pem_slice(key).map_err(bad)?;
            builder
                .with_client_auth_cert(chain.map_err(bad)?, key)
                .map_err(|_| KubeconfigError::Bad("client certificate"))?
        }
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // One connection is kept for everything; room for sessions to resume would be set aside for every cluster.
    tls.resumption = rustls::client::Resumption::disabled();
    Ok(tls)
}

impl Transport for Remote {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(self.exchange(request.map(Full::new)))
    }
}
