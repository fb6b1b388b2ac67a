//! One issuer: its keys, and the checks of its tokens.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::time::Instant;

use crate::Identity;
use crate::config::IssuerConfig;
use crate::keys::{self, Key};
use crate::mapping::Mapping;
use crate::token::Token;

/// The longest discovery document or key set.
const MAX_DOCUMENT: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Tokens with unknown keys cause at most one fetch in this time, whoever sends them.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);
/// How far ahead `nbf` may be: clocks differ.
const NOT_BEFORE_LEEWAY: i64 = 300;

pub(crate) struct Issuer {
    url: String,
    discovery: String,
    audiences: Vec<String>,
    mapping: Mapping,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    keys: RwLock<Arc<Vec<Key>>>,
    /// When keys were last asked for. Held while they are.
    fetched: tokio::sync::Mutex<Option<Instant>>,
}

impl Issuer {
    pub fn new(config: &IssuerConfig, mapping: Mapping) -> Result<Self, String> {
        let tls = ClientConfig::builder_with_provider(capstan_pki::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let tls = if config.certificate_authority.is_empty() {
            tls.with_native_roots().map_err(|error| error.to_string())?.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(config.certificate_authority.as_bytes()) {
                let certificate = certificate.map_err(|error| error.to_string())?;
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
            if roots.is_empty() {
                return Err("contains no certificate".to_owned());
            }
            tls.with_root_certificates(roots).with_no_client_auth()
        };
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        let discovery = match config.discovery_url.as_str() {
            "" => format!("{}/.well-known/openid-configuration", config.url.trim_end_matches('/')),
            url => url.to_owned(),
        };
        Ok(Self {
            url: config.url.clone(),
            discovery,
            audiences: config.audiences.clone(),
            mapping,
            client: Client::builder(TokioExecutor::new()).build(connector),
            keys: RwLock::default(),
            fetched: tokio::sync::Mutex::default(),
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn knows_key_of(&self, token: &Token<'_>) -> bool {
        self.keys.read().iter().any(|key| key.may_be_of(token))
    }

    /// Fetches the issuer's keys if none of them may have signed a token.
    pub async fn fetch_key(&self, token: &Token<'_>) {
        if self.knows_key_of(token) {
            return;
        }
        let mut fetched = self.fetched.lock().await;
        // Whoever held the lock may have fetched it.
        if self.knows_key_of(token) || fetched.is_some_and(|at| at.elapsed() < FETCH_INTERVAL) {
            return;
        }
        *fetched = Some(Instant::now());
        match tokio::time::timeout(TIMEOUT, self.fetch())
            .await
            .unwrap_or_else(|_| Err("no answer".to_owned()))
        {
            Ok(keys) => *self.keys.write() = Arc::new(keys),
            Err(error) => {
                tracing::warn!(
                    issuer = self.url,
                    error,
                    "the keys of an issuer cannot be fetched; its tokens are refused"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Key>, String> {
        let document = self.get(&self.discovery).await?;
        // A document of somebody else must not bring its keys.
        if document["issuer"] != self.url {
            return Err(format!("{} is the discovery document of another issuer", self.discovery));
        }
        let keys = document["jwks_uri"].as_str().ok_or("the discovery document has no jwks_uri")?;
        let keys = keys::read(&self.get(keys).await?);
        if keys.is_empty() {
            return Err("the issuer publishes no key of a known type".to_owned());
        }
        Ok(keys)
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        let failed = |error: String| format!("{url}: {error}");
        let uri: http::Uri = url.parse().map_err(|_| failed("is not a URL".to_owned()))?;
        let response = self.client.get(uri).await.map_err(|error| failed(describe(&error)))?;
        if response.status() != http::StatusCode::OK {
            return Err(failed(format!("the answer is {}", response.status())));
        }
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
        serde_json::from_slice(&body).map_err(|_| failed("the answer is not valid JSON".to_owned()))
    }

    /// The user of a token of this issuer.
    pub fn check(&self, token: Token<'_>, now: Timestamp) -> Result<Identity, String> {
        let keys = self.keys.read().clone();
        if !keys.iter().any(|key| key.may_be_of(&token) && key.signed(&token)) {
            return Err("failed to verify the signature of the token".to_owned());
        }
        let claims = token.into_claims();
        let seconds = |claim: &str| claims[claim].as_f64().filter(|time| time.is_finite());
        let now = now.as_second() as f64;
        if seconds("exp").ok_or("the token has no expiry")? < now {
            return Err("the token has expired".to_owned());
        }
        if seconds("nbf").is_some_and(|begin| begin > now + NOT_BEFORE_LEEWAY as f64) {
            return Err("the token is not valid yet".to_owned());
        }
        let for_us = |audience: &str| self.audiences.iter().any(|ours| ours == audience);
        let meant = match &claims["aud"] {
            Value::String(audience) => for_us(audience),
            Value::Array(all) => all.iter().filter_map(Value::as_str).any(for_us),
            _ => false,
        };
        if !meant {
            return Err("the token is for another audience".to_owned());
        }
        self.mapping.user(&claims)
    }
}

fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
