//! A webhook server on loopback, for tests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use capstan_env::Env;
use capstan_pki::Pki;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Handles one request: path and body to status and body. `None` means no response, ever.
type Answer = dyn Fn(&str, Value) -> Option<(u16, String)> + Send + Sync;

/// A webhook server with a certificate of its own CA.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) ca_bundle: String,
    /// Paths and bodies of the calls so far.
    pub(crate) calls: Arc<Mutex<Vec<(String, Value)>>>,
    /// Connections so far.
    pub(crate) connections: Arc<Mutex<usize>>,
    /// The certificate that a client presented on each of them.
    pub(crate) presented: Arc<Mutex<Vec<Option<Vec<u8>>>>>,
}

impl Server {
    /// Serves under these names until the runtime ends.
    pub(crate) async fn start(
        names: &[&str],
        answer: impl Fn(&str, Value) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let acceptor = TlsAcceptor::from(pki.server_config(&names).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            ca_bundle: STANDARD.encode(pki.ca_pem().unwrap()),
            calls: Arc::default(),
            connections: Arc::default(),
            presented: Arc::default(),
        };
        let (calls, connections) = (server.calls.clone(), server.connections.clone());
        let presented = server.presented.clone();
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer, calls) = (acceptor.clone(), answer.clone(), calls.clone());
                let (connections, presented) = (connections.clone(), presented.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    *connections.lock() += 1;
                    let chain = stream.get_ref().1.peer_certificates();
                    presented.lock().push(chain.and_then(<[_]>::first).map(|leaf| leaf.to_vec()));
                    let service = service_fn(move |request| reply(request, answer.clone(), calls.clone()));
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        server
    }

    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle})
    }
}

async fn reply(
    request: Request<Incoming>,
    answer: Arc<Answer>,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().to_string();
    let path = path
        .find("/")
        .filter(|_| !path.starts_with('/'))
        .map_or(path.clone(), |_| request.uri().path_and_query().unwrap().to_string());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    calls.lock().push((path.clone(), body.clone()));
    match answer(&path, body) {
        Some((status, body)) => {
            Ok(Response::builder().status(status).body(Full::new(Bytes::from(body))).unwrap())
        }
        None => std::future::pending().await,
    }
}
