//! HTTPS calls to webhooks: POST a review, get a review.
//!
//! Connections are pooled per target and CA. No proxy is used, redirects are not followed, a response has at most
//! [`MAX_ANSWER`] bytes.

mod answer;
mod config;
mod dial;
#[cfg(test)]
mod fuzz;
mod identity;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_env::Env;
pub use config::ClientConfig;
use config::Target;
use dial::{Connector, DialError};
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use identity::Identity;
pub use identity::IdentityFiles;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use serde::Serialize;
use serde_json::Value;

use crate::auth::ObjectSource;

/// Largest response in bytes.
pub const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// Size of the client cache. It is cleared when full.
const KEPT_CLIENTS: usize = 200;
/// Idle timeout of a connection.
const IDLE: Duration = Duration::from_secs(90);

/// Why a call failed, with the text of upstream's client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The webhook's configuration is invalid.
    #[error("could not get REST client: {0}")]
    Unusable(String),
    #[error("failed to call webhook: {0}")]
    Failed(String),
}

impl CallError {
    /// The reason without prefix, as in conversion errors.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unusable(reason) | Self::Failed(reason) => reason,
        }
    }
}

type HttpClient = Client<HttpsConnector<Connector>, Full<Bytes>>;

pub struct WebhookClient {
    source: Arc<dyn ObjectSource>,
    env: Env,
    identity: Option<IdentityFiles>,
    clients: Mutex<Clients>,
}

/// Clients with connections, which all present the same certificate.
#[derive(Default)]
struct Clients {
    identity: Option<Identity>,
    by_config: HashMap<ClientConfig, HttpClient>,
}

impl Clients {
    /// Those that present a certificate. A new one ends the connections with the one before.
    fn of(&mut self, identity: Option<&Identity>) -> &mut HashMap<ClientConfig, HttpClient> {
        if self.identity.as_ref() != identity {
            self.identity = identity.cloned();
            self.by_config.clear();
        }
        &mut self.by_config
    }
}

impl WebhookClient {
    /// Looks up Services of webhooks in `source`.
    pub fn new(source: Arc<dyn ObjectSource>, env: Env) -> Self {
        Self { source, env, identity: None, clients: Mutex::default() }
    }

    /// Presents this certificate to servers that ask for one.
    #[must_use]
    pub fn presenting(mut self, identity: IdentityFiles) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Posts a review of many objects and returns the JSON object of the response.
    pub async fn post(
        &self,
        config: &ClientConfig,
        review: &impl Serialize,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        self.post_within(config, review, timeout, answer::MAX_DECODED_ANSWER).await
    }

    /// Like [`WebhookClient::post`], with a memory limit for the decoded response.
    pub async fn post_within(
        &self,
        config: &ClientConfig,
        review: &impl Serialize,
        timeout: Duration,
        memory: usize,
    ) -> Result<Value, CallError> {
        let client = self.client(config).map_err(CallError::Unusable)?;
        // Sent to the webhook in whole seconds, rounded up.
        let url = config.url(timeout.as_millis().div_ceil(1000) as u64);
        let failed = |why: String| CallError::Failed(format!("Post {url:?}: {why}"));
        let body = serde_json::to_vec(review).map_err(|error| failed(error.to_string()))?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(&url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| failed(error.to_string()))?;

        let call = async {
            let response = client.request(request).await.map_err(|error| failed(describe(&error)))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| {
                let why = match error.downcast_ref::<LengthLimitError>() {
                    Some(_) => format!("the answer is longer than {MAX_ANSWER} bytes"),
                    None => error.to_string(),
                };
                CallError::Failed(format!(
                    "unexpected error when reading response body. Please retry. Original error: {why}"
                ))
            })?;
            answer::read(&head, &body.to_bytes(), memory).map_err(CallError::Failed)
        };
        match tokio::time::timeout(timeout, call).await {
            Ok(answer) => answer,
            Err(_) => Err(failed("context deadline exceeded".into())),
        }
    }

    fn client(&self, config: &ClientConfig) -> Result<HttpClient, String> {
        let identity = self.identity.as_ref().map(IdentityFiles::read).transpose()?;
        if let Some(client) = self.clients.lock().of(identity.as_ref()).get(config) {
            return Ok(client.clone());
        }
        let client = self.connect(config, identity.as_ref())?;
        let mut clients = self.clients.lock();
        let clients = clients.of(identity.as_ref());
        if clients.len() >= KEPT_CLIENTS {
            clients.clear();
        }
        Ok(clients.entry(config.clone()).or_insert(client).clone())
    }

    fn connect(&self, config: &ClientConfig, identity: Option<&Identity>) -> Result<HttpClient, String> {
        let mut tls = trust::tls_config(&config.ca_bundle, identity, &self.env)?;
        // One connection per call to remote targets: HTTP/2 would send all calls to one of several backends.
        tls.alpn_protocols = match config.is_local() {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        let connector = match &config.target {
            Target::Url(_) => HttpsConnector::from((Connector::Host, tls)),
            Target::Service(service) => {
                let name = ServerName::try_from(service.server_name()).map_err(|error| error.to_string())?;
                let dial = Connector::Service(service.clone(), self.source.clone());
                HttpsConnector::new(dial, tls, true, Arc::new(FixedServerNameResolver::new(name)))
            }
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(client)
    }
}

/// A connection error with Go's text.
fn describe(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error.to_string();
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(dial) = error.downcast_ref::<DialError>() {
            return dial.to_string();
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return trust::describe(tls);
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "EOF".into();
        }
        deepest = error.to_string();
        // An I/O error returns the source of the wrapped error, not the wrapped error.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        current = wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source());
    }
    deepest
}
