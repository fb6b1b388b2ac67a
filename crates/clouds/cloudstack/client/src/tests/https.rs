//! Over real sockets on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::alice;
use crate::commands::ListZones;
use crate::{Client, Endpoint, Error, ErrorKind, Https, HttpsOptions, Limits, Policy, Trust, TrustError};

const ANSWER: &str = r#"{"listzonesresponse":{"count":1,"zone":[{"id":"z","name":"zone"}]}}"#;

/// A server on loopback with a certificate of its own; its address and the certificate.
async fn server() -> (SocketAddr, Vec<u8>) {
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
                let answer = service_fn(|_| async {
                    Ok::<_, std::convert::Infallible>(http::Response::new(Full::<bytes::Bytes>::from(ANSWER)))
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    });
    (address, issued.cert.pem().into_bytes())
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
