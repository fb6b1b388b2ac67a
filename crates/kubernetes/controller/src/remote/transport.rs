//! HTTP over TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_env::Env;
use capstan_pki::tls_time;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::credential::{Credential, Credentials};
use super::{Access, Dial, KubeconfigError};
use crate::client::{Body, Transport, TransportError};
use crate::workload::Stream;

/// How long a server that is asked whether it is there may take to say so; client-go's time.
const ANSWER: Duration = Duration::from_secs(15);
/// How long dialling and agreeing on TLS may take.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a connection takes new requests. One that is open outlives what leads to the server, such as a rule of a load
/// balancer: only a fresh one shows that others can connect.
const RENEW: Duration = Duration::from_secs(300);
/// Bytes of the headers or trailers of an answer.
const LONGEST_HEADERS: u32 = 32 * 1024;
/// Bytes of a frame of HTTP/2.
const LONGEST_FRAME: u32 = 16 * 1024;
/// Streams that we have reset and the server may still send on.
const MOST_RESET: usize = 32;

/// Bytes that a server may send on HTTP/2 before somebody reads them: of one answer, and of all on the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    answer: u32,
    connection: u32,
}

impl Windows {
    /// For a server that lists large collections.
    const WIDE: Self = Self { answer: 2 << 20, connection: 5 << 20 };
    /// For one of thousands of clusters.
    pub const NARROW: Self = Self { answer: 256 << 10, connection: 1 << 20 };
}

/// A server reached over TLS.
pub struct Remote {
    access: Access,
    dial: Arc<dyn Dial>,
    env: Env,
    roots: Arc<rustls::RootCertStore>,
    tls: Arc<rustls::ClientConfig>,
    server_name: ServerName<'static>,
    credentials: Credentials,
    windows: Windows,
    /// The connection that everything shares, if the server speaks HTTP/2.
    shared: Mutex<Option<OpenConnection>>,
}

struct OpenConnection {
    sender: http2::SendRequest<Full<Bytes>>,
    /// The certificate it was opened with, if that may change.
    generation: Option<u64>,
    opened: Instant,
}

impl OpenConnection {
    /// It takes another request.
    fn is_usable(&self, generation: Option<u64>) -> bool {
        !self.sender.is_closed() && self.generation == generation && self.opened.elapsed() < RENEW
    }
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
        let windows = Windows::WIDE;
        Ok(Self { access, dial, env, roots, tls, server_name, credentials, windows, shared })
    }

    /// Has the server send no more than this before it is read.
    #[must_use]
    pub(crate) fn with_windows(self, windows: Windows) -> Self {
        Self { windows, ..self }
    }

    /// The current credential.
    pub(super) async fn credential(&self) -> io::Result<Arc<Credential>> {
        self.credentials.current().await.map_err(io::Error::other)
    }

    /// A fresh TLS connection.
    pub(super) async fn connect(
        &self,
        credential: &Credential,
        http1_only: bool,
    ) -> io::Result<TlsStream<Box<dyn Stream>>> {
        let connected = tokio::time::timeout(CONNECT, self.dial_tls(credential, http1_only)).await;
        connected.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {CONNECT:?}")))
        })
    }

    async fn dial_tls(
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
        let never = |message: String| TransportError::never_sent(message);
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
                .map_err(|_| never("the token is not a header value".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(())
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Body>, TransportError> {
        let never = |error: &dyn std::fmt::Display| TransportError::never_sent(error.to_string());
        let credential = self.credential().await.map_err(|error| never(&error))?;
        let generation = credential.identity.as_ref().map(|_| credential.generation);
        let mut shared = self.shared.lock().await;
        if !shared.as_ref().is_some_and(|open| open.is_usable(generation)) {
            *shared = None;
            let stream = self.connect(&credential, false).await.map_err(|error| never(&error))?;
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                drop(shared);
                return self.over_http1(stream, request, &credential).await;
            }
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .initial_stream_window_size(self.windows.answer)
                .initial_connection_window_size(self.windows.connection)
                .max_header_list_size(LONGEST_HEADERS)
                .max_frame_size(LONGEST_FRAME)
                .max_concurrent_reset_streams(MOST_RESET);
            if let Some(interval) = self.dial.ask_every(&self.access.host, self.access.port) {
                // A watch on a connection that died without a word would wait for ever.
                builder.timer(TokioTimer::new()).keep_alive_interval(interval).keep_alive_timeout(ANSWER);
            }
            let (sender, connection) =
                builder.handshake(TokioIo::new(stream)).await.map_err(|error| never(&error))?;
            tokio::spawn(connection);
            *shared = Some(OpenConnection { sender, generation, opened: Instant::now() });
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
        let response = sent.map_err(|error| TransportError {
            headers_too_long: headers_too_long(&error),
            ..TransportError::ambiguous(error.to_string())
        })?;
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
        let never = |error: &dyn std::fmt::Display| TransportError::never_sent(error.to_string());
        let (mut sender, connection) =
            http1_builder().handshake(TokioIo::new(stream)).await.map_err(|error| never(&error))?;
        tokio::spawn(connection);
        self.address(&mut request, credential, false)?;
        let sent = sender.send_request(request).await;
        self.answered(sent, credential).await
    }
}

/// How HTTP/1.1 is spoken: as much is buffered as headers may take.
pub(super) fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(LONGEST_HEADERS as usize);
    builder
}

/// Whether an answer was not read because of its headers.
fn headers_too_long(error: &hyper::Error) -> bool {
    if error.is_parse_too_large() {
        return true;
    }
    // HTTP/2 has no code for it: the client calls it a violation of the protocol or, past all measure, abuse.
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<h2::Error>() {
            let reasons = [h2::Reason::PROTOCOL_ERROR, h2::Reason::ENHANCE_YOUR_CALM];
            return error.is_library() && error.reason().is_some_and(|reason| reasons.contains(&reason));
        }
        source = cause.source();
    }
    false
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

#[cfg(test)]
mod tests {
    use capstan_pki::Pki;
    use hyper::server::conn::http2 as server;
    use hyper::service::service_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::client::{ApiError, Client, Limit};

    /// A server that answers with headers, over one of the versions of HTTP.
    struct Verbose {
        pki: Arc<Pki>,
        /// How many headers of a kilobyte, or endlessly many in HTTP/1.1.
        headers: usize,
        http2: bool,
    }

    impl Dial for Verbose {
        fn dial<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
            Box::pin(async {
                let (near, far) = tokio::io::duplex(1 << 16);
                let tls = self.pki.server_config(&["server".to_owned()]).map_err(io::Error::other)?;
                let mut tls = (*tls).clone();
                tls.alpn_protocols = vec![if self.http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
                let (headers, http2) = (self.headers, self.http2);
                tokio::spawn(async move {
                    let stream =
                        tokio_rustls::TlsAcceptor::from(Arc::new(tls)).accept(far).await.expect("TLS");
                    match http2 {
                        true => over_http2(stream, headers).await,
                        false => over_http1(stream, headers).await,
                    }
                });
                Ok(Box::new(near) as Box<dyn Stream>)
            })
        }
    }

    async fn over_http2(stream: impl Stream + 'static, headers: usize) {
        let answer = service_fn(move |_| async move {
            let names = (0..headers).map(|n| format!("x-{n}"));
            let response =
                names.fold(Response::builder(), |response, name| response.header(name, "v".repeat(1000)));
            response.body(Full::new(Bytes::from_static(b"{}")))
        });
        let served = server::Builder::new(TokioExecutor::new());
        let _ = served.serve_connection(TokioIo::new(stream), answer).await;
    }

    async fn over_http1(mut stream: impl Stream, headers: usize) {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let header = format!("x: {}\r\n", "v".repeat(1000));
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n").await.is_err() {
            return;
        }
        for _ in 0..headers {
            if stream.write_all(header.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"\r\n{}").await;
        let _ = stream.flush().await;
    }

    async fn ask(headers: usize, http2: bool) -> Result<Bytes, ApiError> {
        let env = Env::system();
        let pki = Arc::new(Pki::ephemeral(env.clone()));
        let access = Access {
            host: "server".into(),
            port: 6443,
            prefix: String::new(),
            server_name: None,
            authorities: pki.ca_pem().expect("an authority").into_bytes(),
            identity: None,
            authorization: None,
        };
        let remote = Remote::new(access, Arc::new(Verbose { pki, headers, http2 }), &env).expect("a client");
        Client::new(Arc::new(remote.with_windows(Windows::NARROW)), "test").document("/").await
    }

    #[tokio::test]
    async fn headers_without_end_are_cut_off() {
        for http2 in [false, true] {
            assert_eq!(ask(8, http2).await.expect("an answer"), "{}");
            let many = if http2 { 64 } else { usize::MAX };
            match ask(many, http2).await {
                Err(ApiError::Limit(exceeded)) => assert_eq!(exceeded.limit, Limit::Headers),
                answer => panic!("HTTP/2 {http2}: {answer:?}"),
            }
        }
        match ask(10_000, true).await {
            Err(ApiError::Limit(exceeded)) => assert_eq!(exceeded.limit, Limit::Headers),
            answer => panic!("{answer:?}"),
        }
    }

    /// A server behind a load balancer whose rule can be taken away: connections that are open go on.
    struct Balanced {
        server: Verbose,
        is_gone: std::sync::atomic::AtomicBool,
    }

    impl Dial for Balanced {
        fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
            match self.is_gone.load(std::sync::atomic::Ordering::Relaxed) {
                true => Box::pin(async { Err(io::Error::from(io::ErrorKind::ConnectionRefused)) }),
                false => self.server.dial(host, port),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_nobody_else_can_connect_to_is_noticed() {
        let env = Env::system();
        let pki = Arc::new(Pki::ephemeral(env.clone()));
        let access = Access {
            host: "server".into(),
            port: 6443,
            prefix: String::new(),
            server_name: None,
            authorities: pki.ca_pem().expect("an authority").into_bytes(),
            identity: None,
            authorization: None,
        };
        let server = Verbose { pki, headers: 1, http2: true };
        let dial = Arc::new(Balanced { server, is_gone: Default::default() });
        let remote = Remote::new(access, dial.clone(), &env).expect("a client");
        let client = Client::new(Arc::new(remote), "test");
        client.document("/").await.expect("an answer");
        dial.is_gone.store(true, std::sync::atomic::Ordering::Relaxed);
        client.document("/").await.expect("the connection is open");
        tokio::time::advance(RENEW).await;
        let error = client.document("/").await.expect_err("no fresh connection");
        assert!(matches!(error, ApiError::Transport(TransportError { never_sent: true, .. })), "{error:?}");
    }

    /// Accepts connections and says nothing.
    struct Silent;

    impl Dial for Silent {
        fn dial<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
            Box::pin(async {
                let (near, far) = tokio::io::duplex(1 << 16);
                tokio::spawn(async move {
                    let _open = far;
                    std::future::pending::<()>().await;
                });
                Ok(Box::new(near) as Box<dyn Stream>)
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_agree_on_tls_is_given_up() {
        let pki = Pki::ephemeral(Env::system());
        let access = Access {
            host: "server".into(),
            port: 6443,
            prefix: String::new(),
            server_name: None,
            authorities: pki.ca_pem().expect("an authority").into_bytes(),
            identity: None,
            authorization: None,
        };
        let remote = Remote::new(access, Arc::new(Silent), &Env::system()).expect("a client");
        let error = Client::new(Arc::new(remote), "test").document("/").await.expect_err("no connection");
        assert!(matches!(error, ApiError::Transport(TransportError { never_sent: true, .. })), "{error:?}");
    }
}
