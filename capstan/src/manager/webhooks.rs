//! The webhook server; its certificate can change while it serves.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use capstan_capi_plane::{NotAReview, Reviewer};
use capstan_pki::Credential;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::net::TcpListener;

use super::registration::path;
use super::web::{self, WebResponse};

/// Limit of a review, in bytes: API servers send whole pages of lists to be converted.
const LARGEST: usize = 64 << 20;

/// The serving certificate in use.
#[derive(Debug, Default)]
pub struct Serving(RwLock<Option<Arc<CertifiedKey>>>);

impl Serving {
    /// Uses this certificate for new connections.
    pub fn renew(&self, credential: &Credential) -> Result<()> {
        let key = rustls::crypto::ring::sign::any_supported_type(&credential.key.to_rustls())?;
        *self.0.write() = Some(Arc::new(CertifiedKey::new(vec![credential.certificate.clone()], key)));
        Ok(())
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

/// Serves reviews until the task is dropped.
pub async fn serve(listener: TcpListener, serving: Arc<Serving>, reviewer: Arc<Reviewer>) -> Result<()> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(serving);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    web::serve(listener, Some(Arc::new(tls)), move |request| review_response(reviewer.clone(), request))
        .await;
    Ok(())
}

async fn review_response(reviewer: Arc<Reviewer>, request: Request<Incoming>) -> WebResponse {
    if request.method() != Method::POST {
        return web::text(StatusCode::METHOD_NOT_ALLOWED, "use POST");
    }
    let request_path = request.uri().path().to_owned();
    let body: Bytes = match Limited::new(request.into_body(), LARGEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return web::text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or incomplete"),
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body) else {
        return web::text(StatusCode::BAD_REQUEST, "the review is not JSON");
    };
    let reviewed: Result<Value, NotAReview> = match request_path.as_str() {
        path::DEFAULT => reviewer.default(review).await,
        path::VALIDATE => reviewer.validate(review).await,
        path::CONVERT => reviewer.convert(review),
        _ => return web::text(StatusCode::NOT_FOUND, "not found: use /default, /validate or /convert"),
    };
    match reviewed {
        Ok(review) => web::json(&review),
        Err(error) => web::text(StatusCode::BAD_REQUEST, error.to_string()),
    }
}
