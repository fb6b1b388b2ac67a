//! Sending a command, and sending it again where that is safe.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_cloud_http::TransportError;
use http::{HeaderMap, Method, Request, Uri, header};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::account::Gate;
use crate::cache::Cache;
use crate::command::{Call, Command, Effect};
use crate::credentials::{CredentialSource, Credentials};
use crate::endpoint::Endpoint;
use crate::error::{Class, Code, Error, ErrorKind};
use crate::jobs::Board;
use crate::policy::Policy;
use crate::{envelope, parameters, sign, url_hint};

/// The longest query sent by GET. Servers read request lines of about 8 KiB.
const LONGEST_QUERY: usize = 4096;

/// Speaks to one endpoint with one account's keys. Clones share everything.
#[derive(Clone)]
pub struct Client {
    pub(crate) endpoint: Arc<Endpoint>,
    credentials: Arc<dyn CredentialSource>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) shared: Arc<CloneState>,
}

/// What all clones of a client share.
#[derive(Default)]
pub(crate) struct CloneState {
    gate: Gate,
    pub(crate) board: Board,
    pub(crate) cache: Cache,
}

/// One request and what came of it.
struct Exchange {
    outcome: Result<Box<RawValue>, ErrorKind>,
    /// How long the server asked to be left alone.
    retry_after: Option<Duration>,
}

impl Client {
    /// A client with the default policy.
    pub fn new(endpoint: Arc<Endpoint>, credentials: Arc<dyn CredentialSource>) -> Self {
        Self::with_policy(endpoint, credentials, Policy::default())
    }

    /// A client with a policy of its own.
    pub fn with_policy(
        endpoint: Arc<Endpoint>,
        credentials: Arc<dyn CredentialSource>,
        policy: Policy,
    ) -> Self {
        Self { endpoint, credentials, policy: Arc::new(policy), shared: Arc::default() }
    }

    /// The server behind it.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        self.credentials.current()
    }

    /// Runs a command that answers at once.
    pub async fn call<C: Call>(&self, command: &C) -> Result<C::Answer, Error> {
        let parameters = self.parameters(command)?;
        let inside = self.send(C::NAME, &parameters).await?;
        envelope::result(&inside, C::KEY).map_err(|kind| self.error(C::NAME, kind))
    }

    pub(crate) fn parameters<C: Command>(&self, command: &C) -> Result<Vec<(String, String)>, Error> {
        parameters::flatten(command)
            .map_err(|error| self.error(C::NAME, ErrorKind::Unwritable(error.to_string())))
    }

    pub(crate) fn error(&self, command: &'static str, kind: ErrorKind) -> Error {
        Error::new(command, Effect::of(command), kind)
    }

    /// Sends a command until it is answered, refused for good, or not safe to send again.
    pub(crate) async fn send(
        &self,
        command: &'static str,
        parameters: &[(String, String)],
    ) -> Result<Box<RawValue>, Error> {
        let mut attempts = 0;
        loop {
            self.shared.gate.quiet().await;
            let credentials = self.credentials();
            let policy = &self.policy;
            if let Some(refusal) =
                self.shared.gate.refusal(&credentials, policy.refusals, policy.refusal_pause)
            {
                return Err(self.error(command, ErrorKind::Refused(refusal)));
            }
            let begun = Instant::now();
            let exchange = self.exchange(command, parameters, &credentials).await;
            let outcome = exchange.outcome.map_err(|kind| self.error(command, kind));
            let took = begun.elapsed();
            self.endpoint.metrics.exchanged(command, took, outcome.as_ref().err(), attempts > 0);
            let error = match outcome {
                Ok(inside) => {
                    tracing::debug!(command, ?took, "cloudstack answered");
                    self.shared.gate.accepted();
                    return Ok(inside);
                }
                Err(error) => error,
            };
            tracing::debug!(command, ?took, %error, "cloudstack gave no result");
            attempts += 1;
            let pause = policy.pause(attempts, exchange.retry_after);
            self.learn(&error, credentials, pause);
            if !policy.may_repeat(&error, attempts) {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// What an error says about later requests.
    fn learn(&self, error: &Error, credentials: Arc<Credentials>, pause: Duration) {
        let Some(refusal) = error.refusal() else {
            return;
        };
        match refusal.code {
            Code::Unauthorized => self.shared.gate.refused(credentials, refusal.clone()),
            // Anything else comes after the signature was checked.
            _ if refusal.code.class() == Class::RateLimited => self.shared.gate.hush(pause),
            _ => self.shared.gate.accepted(),
        }
    }

    async fn exchange(
        &self,
        command: &'static str,
        parameters: &[(String, String)],
        credentials: &Credentials,
    ) -> Exchange {
        let failed = |kind| Exchange { outcome: Err(kind), retry_after: None };
        let Ok(_permit) = self.endpoint.permits.acquire().await else {
            return failed(ErrorKind::Unreachable("the endpoint is closed".to_owned()));
        };
        // Signed only now: waiting for others must not eat into the time that the signature holds.
        let form = sign::signed(command, parameters, credentials, (self.endpoint.clock)());
        let request = match request(&self.endpoint.uri, Effect::of(command), form) {
            Ok(request) => request,
            Err(error) => return failed(ErrorKind::Unwritable(error.to_string())),
        };
        let timeout = self.endpoint.limits.timeout;
        match tokio::time::timeout(timeout, self.endpoint.transport.send(request)).await {
            Err(_) => failed(ErrorKind::TimedOut(timeout)),
            Ok(Err(TransportError { message, never_sent })) => {
                let mut message = credentials.redact(&envelope::tidy(&message));
                if let Some(other) = url_hint::other_scheme(&self.endpoint.uri, &message) {
                    message = format!("{message}; try {other}");
                }
                failed(if never_sent { ErrorKind::Unreachable(message) } else { ErrorKind::Lost(message) })
            }
            Ok(Ok(response)) => Exchange {
                outcome: envelope::open(&response)
                    .map_err(|kind| url_hint::hinted(kind, &self.endpoint.uri, response.headers()))
                    .map_err(|kind| redacted(kind, credentials)),
                retry_after: retry_after(response.headers()),
            },
        }
    }
}

/// Changes go by POST, because a server may insist on it; so does what is too long for a request line.
fn request(uri: &Uri, effect: Effect, form: String) -> Result<Request<Bytes>, http::Error> {
    let builder = Request::builder()
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("capstan/", env!("CARGO_PKG_VERSION")));
    if effect == Effect::Read && form.len() <= LONGEST_QUERY {
        return builder.method(Method::GET).uri(format!("{uri}?{form}")).body(Bytes::new());
    }
    builder
        .method(Method::POST)
        .uri(uri)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Bytes::from(form))
}

/// A server that repeats our keys in its text must not spread them.
fn redacted(kind: ErrorKind, credentials: &Credentials) -> ErrorKind {
    match kind {
        ErrorKind::Refused(mut refusal) => {
            refusal.text = credentials.redact(&refusal.text);
            ErrorKind::Refused(refusal)
        }
        other => other,
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
