//! Connections with inactive clients, and more connections than allowed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::net::TcpSocket;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::Config;
use capstan_env::Env;

const WATCH: &str = "https://localhost/apis/coordination.k8s.io/v1/leases?watch=true&timeoutSeconds=100000";

pub(super) async fn server(config: Config) -> Server {
    Server::start(config, Arc::new(Pki::ephemeral(Env::system()))).await.expect("a server")
}

/// A connection to a server, after its TLS handshake.
pub(super) async fn connect(server: &Server, protocol: &[u8]) -> TlsStream<DuplexStream> {
    let pki = server.pki().clone();
    let acceptor = TlsAcceptor::from(pki.server_config(&["localhost".into()]).expect("TLS"));
    let (near, far) = tokio::io::duplex(64 << 10);
    let (stopping, stopped) = watch::channel(false);
    let served = server.clone();
    tokio::spawn(async move {
        let pki = served.pki().clone();
        let (open, _) = mpsc::channel(1);
        serve_until_idle(&acceptor, far, Ipv4Addr::LOCALHOST.into(), &pki, served, stopped, open).await;
        drop(stopping);
    });
    let pki = server.pki();
    let mut roots = rustls::RootCertStore::empty();
    let ca = pki.ca_pem().expect("an authority");
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("a certificate")).expect("a root");
    let admin = pki.client("admin", &["system:masters"]).expect("a certificate");
    let chain =
        vec![CertificateDer::from_pem_slice(admin.certificate_pem().as_bytes()).expect("a certificate")];
    let mut config = rustls::ClientConfig::builder_with_provider(capstan_pki::provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, admin.key.to_rustls())
        .expect("a client certificate");
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = "localhost".try_into().expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, near).await.expect("a handshake")
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_sends_no_byte_is_closed() {
    let server = server(Config::in_memory()).await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let mut stream = connect(&server, protocol).await;
        let began = Instant::now();
        let ended =
            tokio::time::timeout(Duration::from_secs(3600), stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "{} is still open after an hour", String::from_utf8_lossy(protocol));
        let after = began.elapsed().as_secs();
        assert!((30..=35).contains(&after), "{} after {after} s", String::from_utf8_lossy(protocol));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_begin_ends_the_connection() {
    let server = server(Config::in_memory()).await;
    let acceptor = TlsAcceptor::from(server.pki().server_config(&["localhost".into()]).expect("TLS"));
    let (_near, far) = tokio::io::duplex(1024);
    let (_stopping, stopped) = watch::channel(false);
    let began = Instant::now();
    serve_until_idle(
        &acceptor,
        far,
        Ipv4Addr::LOCALHOST.into(),
        &server.pki().clone(),
        server.clone(),
        stopped,
        mpsc::channel(1).0,
    )
    .await;
    assert_eq!(began.elapsed(), HANDSHAKE);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_closed_and_one_with_a_watch_is_not() {
    let server = server(Config::in_memory()).await;
    let stream = TokioIo::new(connect(&server, b"h2").await);
    let (mut client, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .handshake::<_, Empty<Bytes>>(stream)
        .await
        .expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let request = http::Request::get(WATCH).body(Empty::new()).expect("a request");
    let mut watch = client.send_request(request).await.expect("a watch").into_body();
    let next = tokio::time::timeout(Duration::from_secs(6 * 3600), watch.frame()).await;
    next.expect_err("the watch goes on for hours without an event");
    assert!(!connection.is_finished());
    drop(watch);
    let began = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(3600), connection).await;
    let _ = ended.expect("the connection is closed").expect("its task ends");
    let after = began.elapsed().as_secs();
    assert!((90..=100).contains(&after), "after {after} s");
}

/// A connection from an address of this host. It is refused if the server closes it at once.
async fn from(address: [u8; 4], to: SocketAddr) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((address, 0).into()).expect("an address of this host");
    socket.connect(to).await.expect("a connection")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_address_cannot_lock_others_out() {
    let limits = ConnectionLimits { total: 4, per_address: 2 };
    let server = server(Config::in_memory().with_connections(limits)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let to = listener.local_addr().expect("an address");
    let serving = server.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let names = ["localhost".to_owned()];
        serving.serve(listener, &names, async { drop(stopped.await) }).await
    });
    let _held = [from([127, 0, 0, 1], to).await, from([127, 0, 0, 1], to).await];
    let mut third = from([127, 0, 0, 1], to).await;
    assert_eq!(third.read(&mut [0; 8]).await.unwrap_or(0), 0, "the third is closed");
    let more = [from([127, 0, 0, 2], to).await, from([127, 0, 0, 2], to).await];
    let mut fifth = from([127, 0, 0, 3], to).await;
    assert_eq!(fifth.read(&mut [0; 8]).await.unwrap_or(0), 0, "the fifth is closed");
    let connections = server.connections();
    assert_eq!(connections.open(), 4);
    let refused: Vec<u64> = Refusal::ALL.iter().map(|why| connections.refused(*why)).collect();
    assert_eq!(refused, [1, 1, 0]);
    let page = crate::metrics::expose(server.parts());
    assert!(page.contains("capstan_connections 4\n"), "{page}");
    assert!(page.contains("capstan_connections_refused_total{reason=\"address\"} 1\n"), "{page}");
    drop((_held, more));
    drop(stop);
    served.await.expect("no panic").expect("it stops");
}
