//! One management server, shared by all accounts that speak to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloud_http::Transport;
use http::Uri;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use url::Url;

use crate::metrics::Metrics;

/// The wall clock: signatures expire by it. Waiting is by Tokio's.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What an endpoint is spared.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests under way at a time, over all accounts.
    pub concurrent: usize,
    /// How long an answer may take. Commands that wait for each other answer in steps of five seconds, so this must be
    /// well above that.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent: 16, timeout: Duration::from_secs(120) }
    }
}

/// A URL that is none of an API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} is not an API URL: {why}")]
pub struct UrlError {
    /// What was given, without user information and query.
    pub url: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// One management server.
pub struct Endpoint {
    pub(crate) uri: Uri,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) limits: Limits,
    pub(crate) permits: Semaphore,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
}

impl Endpoint {
    /// A server by its API URL, such as `https://cloud.example/client/api`, with the system's clock.
    pub fn new(url: &str, transport: Arc<dyn Transport>, limits: Limits) -> Result<Self, UrlError> {
        let permits = Semaphore::new(limits.concurrent.clamp(1, Semaphore::MAX_PERMITS));
        let uri = api_url(url)?;
        let clock: Clock = Arc::new(Timestamp::now);
        Ok(Self { uri, transport, limits, permits, clock, metrics: Arc::default() })
    }

    /// The same server by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Where the API is.
    pub fn url(&self) -> String {
        self.uri.to_string()
    }

    /// What was asked of it so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("uri", &self.uri)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn api_url(text: &str) -> Result<Uri, UrlError> {
    let wrong = |url: &str, why| UrlError { url: url.to_owned(), why };
    let mut url = Url::parse(text.trim()).map_err(|_| wrong("", "it cannot be parsed"))?;
    let bad_parts = url.query().is_some() || url.fragment().is_some();
    let has_user = !url.username().is_empty() || url.password().is_some();
    // Neither a password nor keys that somebody pasted belong into an error.
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(url.as_str(), "it is neither http nor https"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong(url.as_str(), "it names no host"));
    }
    if has_user {
        return Err(wrong(url.as_str(), "user names have no place in it"));
    }
    if bad_parts {
        return Err(wrong(url.as_str(), "it has a query or a fragment"));
    }
    url.as_str().parse().map_err(|_| wrong(url.as_str(), "it cannot be parsed"))
}
