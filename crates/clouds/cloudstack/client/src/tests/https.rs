//! Over real sockets on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::alice;
use crate::commands::ListZones;
use crate::{Client, Endpoint, Error, ErrorKind, Https, HttpsOptions, Limits, Policy, Trust, TrustError};

const ANSWER: &str = r#"{"listzonesresponse":{"count":1,"zone":[{"id":"z","name":"zone"}]}}"#;

type Answer = http::Response<Full<bytes::Bytes>>;

/// A server on loopback with a certificate of its own; its address and the certificate.
async fn server() -> (SocketAddr, Vec<u8>) {
    server_that(|_| http::Response::new(ANSWER.into())).await
}

async fn server_that(answer: fn(&str) -> Answer) -> (SocketAddr, Vec<u8>) {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                serve(stream, answer).await;
            });
        }
    });
    (address, issued.cert.pem().into_bytes())
}

/// A server on loopback without TLS.
async fn plain_server(answer: fn(&str) -> Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer));
        }
    });
    address
}

/// Answers requests by their path.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, answer: fn(&str) -> Answer) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| async move {
        Ok::<_, std::convert::Infallible>(answer(request.uri().path()))
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The API at its place, and the pages of the web interface everywhere else.
fn management_server(path: &str) -> Answer {
    let page = "<html><body>CloudStack</body></html>";
    match path {
        "/client/api" => http::Response::new(ANSWER.into()),
        "/client/" => {
            http::Response::builder().header("content-type", "text/html").body(page.into()).unwrap()
        }
        "/client" => moved("/client/"),
        _ => http::Response::builder().status(404).body(page.into()).unwrap(),
    }
}

fn moved(to: &str) -> Answer {
    http::Response::builder().status(302).header("location", to).body(Full::default()).unwrap()
}

/// A proxy that sends everybody to TLS on another host.
fn proxy(path: &str) -> Answer {
    moved(&format!("https://cloud.example:8443{path}"))
}

async fn zones(url: &str, options: &HttpsOptions) -> Result<usize, Error> {
    let transport = Arc::new(Https::new(options).unwrap());
    let endpoint = Arc::new(Endpoint::new(url, transport, Limits::default()).unwrap());
    let policy = Policy { attempts: 1, ..Policy::default() };
    let client = Client::with_policy(endpoint, Arc::new(alice()), policy);
    client.list(&ListZones::default()).await.map(|zones| zones.len())
}

#[tokio::test]
async fn a_servers_certificate_is_believed_by_bundle_or_not_at_all_or_without_looking() {
    let (address, certificate) = server().await;
    let url = format!("https://localhost:{}/client/api", address.port());
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let with = |trust| HttpsOptions { trust, ..HttpsOptions::default() };
    assert_eq!(zones(&url, &with(Trust::Bundle(certificate))).await, Ok(1));
    assert_eq!(zones(&url, &with(Trust::Anyone)).await, Ok(1));
    let error = zones(&url, &with(Trust::Bundle(stranger.into_bytes()))).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Unreachable(_)), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_bundle_without_certificates_is_refused_at_once() {
    for pem in ["", "no pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let trust = Trust::Bundle(pem.as_bytes().to_vec());
        let refused = Https::new(&HttpsOptions { trust, ..HttpsOptions::default() }).err();
        assert_eq!(refused, Some(TrustError::Bundle));
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read() {
    let (address, certificate) = server().await;
    let url = format!("https://localhost:{}/client/api", address.port());
    let options =
        HttpsOptions { trust: Trust::Bundle(certificate), longest_answer: 40, ..HttpsOptions::default() };
    let error = zones(&url, &options).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Lost(_)), "{error}");
}

#[tokio::test]
async fn nobody_listening_is_known_not_to_have_heard_and_a_broken_answer_is_not() {
    let options = HttpsOptions { trust: Trust::Anyone, ..HttpsOptions::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/client/api", listener.local_addr().unwrap());
    let hang_up = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let read = stream.read(&mut [0; 16]).await.unwrap();
        assert!(read > 0);
    });
    let error = zones(&url, &options).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Lost(_)), "{error}");
    hang_up.await.unwrap();
    let error = zones(&url, &options).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Unreachable(_)), "{error}");
}

/// What is said of a URL, without certificates being checked.
async fn said_of(url: &str) -> String {
    let options = HttpsOptions { trust: Trust::Anyone, ..HttpsOptions::default() };
    zones(url, &options).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_url_without_the_path_of_the_api_is_answered_with_the_one_to_try() {
    let plain = plain_server(management_server).await;
    let (tls, _) = server_that(management_server).await;
    for server in [format!("http://{plain}"), format!("https://localhost:{}", tls.port())] {
        let right = format!("{server}/client/api");
        for path in ["", "/", "/client/", "/client"] {
            let said = said_of(&format!("{server}{path}")).await;
            assert!(said.ends_with(&format!("try {right}")), "{server}{path}: {said}");
        }
        let options = HttpsOptions { trust: Trust::Anyone, ..HttpsOptions::default() };
        assert_eq!(zones(&right, &options).await, Ok(1), "the hint is right");
    }
}

#[tokio::test]
async fn a_redirection_is_not_followed_and_the_url_that_it_names_is_said() {
    let address = plain_server(proxy).await;
    for path in ["/client/api", "/client"] {
        let said = said_of(&format!("http://{address}{path}")).await;
        assert!(said.ends_with("it redirects, try https://cloud.example:8443/client/api"), "{path}: {said}");
        assert!(!said.contains("signature"), "{said}");
    }
}

#[tokio::test]
async fn where_one_side_alone_speaks_tls_the_other_scheme_is_said() {
    let plain = plain_server(management_server).await;
    let said = said_of(&format!("https://{plain}/client/api")).await;
    assert!(said.contains(&format!("try http://{plain}/client/api")), "{said}");
    let (tls, _) = server().await;
    let said = said_of(&format!("http://{tls}/client/api")).await;
    assert!(said.contains(&format!("try https://{tls}/client/api")), "{said}");
}
