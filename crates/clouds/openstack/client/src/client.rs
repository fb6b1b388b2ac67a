//! Sending a request, and sending it again where that is safe.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use capstan_cloud_http::{Https, HttpsOptions, Transport, TransportError, TrustError, redact};
use http::{HeaderMap, Method, Request, header};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use url::Url;

use crate::catalog;
use crate::config::Cloud;
use crate::error::{Effect, Error, ErrorKind};
use crate::fault::{read_refusal, tidy};
use crate::metrics::Metrics;
use crate::microversion::{Microversion, Offered, Wanted, read_offered};
use crate::policy::Policy;
use crate::query::Pairs;
use crate::service::Service;
use crate::session::Session;
use crate::token::Token;

/// The wall clock: tokens expire by it. Waiting is by Tokio's.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Speaks to one cloud with one set of credentials. Clones share everything.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) cloud: Cloud,
    transport: Arc<dyn Transport>,
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    permits: Semaphore,
    pub(crate) session: Session,
    /// What the services have, asked once.
    offered: Mutex<BTreeMap<Service, Option<Offered>>>,
    metrics: Arc<Metrics>,
}

/// The body of a request.
#[derive(Clone)]
pub(crate) enum Body {
    None,
    Json(Bytes),
    Other(&'static str, Bytes),
}

/// A request, before it is known where it goes.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// Behind the service's URL, without a slash in front, encoded.
    pub(crate) path: String,
    pub(crate) query: Pairs,
    pub(crate) body: Body,
    pub(crate) wanted: Option<Wanted>,
    pub(crate) effect: Effect,
}

impl Call {
    pub(crate) fn read(service: Service, path: impl Into<String>) -> Self {
        Self {
            service,
            method: Method::GET,
            path: path.into(),
            query: Pairs::new(),
            body: Body::None,
            wanted: None,
            effect: Effect::Read,
        }
    }

    pub(crate) fn change(service: Service, method: Method, path: impl Into<String>, body: Body) -> Self {
        let effect = if method == Method::DELETE { Effect::Idempotent } else { Effect::Change };
        Self { method, body, effect, ..Self::read(service, path) }
    }

    #[must_use]
    pub(crate) fn wanting(self, wanted: Option<Wanted>) -> Self {
        Self { wanted, ..self }
    }

    #[must_use]
    pub(crate) fn with_query(self, query: Pairs) -> Self {
        Self { query, ..self }
    }

    #[must_use]
    pub(crate) fn idempotent(self) -> Self {
        Self { effect: Effect::Idempotent, ..self }
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        let operation = format!("{} /{}", self.method, self.path);
        Error::new(self.service, operation, self.effect, kind)
    }

    pub(crate) fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        let path = match self.path.is_empty() {
            true => base.path().to_owned(),
            false => format!("{}/{}", base.path().trim_end_matches('/'), self.path),
        };
        url.set_path(&path);
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

/// An answer that is none of the errors.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// A client over any transport, with the system's clock.
    pub fn new(cloud: Cloud, transport: Arc<dyn Transport>, policy: Policy) -> Self {
        Self::with_clock(cloud, transport, policy, Arc::new(Timestamp::now))
    }

    /// A client by another clock.
    pub fn with_clock(cloud: Cloud, transport: Arc<dyn Transport>, policy: Policy, clock: Clock) -> Self {
        Self::counting(cloud, transport, policy, (clock, Arc::default()))
    }

    /// A client that counts its requests together with others.
    pub fn counting(
        cloud: Cloud,
        transport: Arc<dyn Transport>,
        policy: Policy,
        (clock, metrics): (Clock, Arc<Metrics>),
    ) -> Self {
        let permits = Semaphore::new(policy.concurrent.clamp(1, Semaphore::MAX_PERMITS));
        let (session, offered) = (Session::default(), Mutex::default());
        Self {
            inner: Arc::new(Inner { cloud, transport, policy, clock, permits, session, offered, metrics }),
        }
    }

    /// A client over the network that believes whom the cloud's settings say. Connects when first used.
    pub fn over_https(cloud: Cloud, policy: Policy) -> Result<Self, TrustError> {
        let options = HttpsOptions {
            trust: cloud.trust.clone(),
            longest_answer: policy.longest_answer,
            ..HttpsOptions::default()
        };
        let transport = Arc::new(Https::new(&options)?);
        Ok(Self::new(cloud, transport, policy))
    }

    /// The settings it was made with.
    pub fn cloud(&self) -> &Cloud {
        &self.inner.cloud
    }

    /// Sends a request until it is answered, refused for good, or not safe to send again.
    pub(crate) async fn send(&self, call: &Call) -> Result<Reply, Error> {
        let token = self.token().await?;
        match self.send_as(call, &token).await {
            // Revoked, or expired by a clock that differs from ours. The service did not carry it out.
            Err(error) if error.status() == Some(401) => {
                let token = self.another_token(&token).await?;
                self.send_as(call, &token).await
            }
            other => other,
        }
    }

    async fn send_as(&self, call: &Call, token: &Token) -> Result<Reply, Error> {
        let base = self.endpoint(call.service, token).map_err(|kind| call.error(kind))?;
        let version = match call.wanted {
            None => None,
            Some(wanted) => Some(self.version(call, wanted, &base, token).await?),
        };
        let reply = self.send_with(call, &call.url(&base), Some(token), version).await;
        if reply.as_ref().is_err_and(|error| error.status() == Some(406)) {
            // The service was replaced by one with other versions.
            self.inner.offered.lock().remove(&call.service);
        }
        reply
    }

    /// Where a service is, by settings or by the catalog.
    pub(crate) fn endpoint(&self, service: Service, token: &Token) -> Result<Url, ErrorKind> {
        let cloud = &self.inner.cloud;
        if let Some(url) = cloud.endpoint_overrides.get(&service) {
            return catalog::versioned(url.as_str(), service, token.project_id())
                .ok_or_else(|| ErrorKind::BadEndpoint { service, url: url.to_string() });
        }
        if service == Service::Identity {
            // Clouds exist whose catalog has an identity URL that only they can reach.
            return Ok(cloud.identity_url.clone());
        }
        catalog::endpoint(token, service, cloud.interface, cloud.region.as_deref())
    }

    async fn version(
        &self,
        call: &Call,
        wanted: Wanted,
        base: &Url,
        token: &Token,
    ) -> Result<Microversion, Error> {
        let known = self.inner.offered.lock().get(&call.service).copied();
        let offered = match known {
            Some(offered) => offered,
            None => {
                let question = Call::read(call.service, "");
                let url = catalog::version_document(base);
                let reply = self.send_with(&question, &url, Some(token), None).await?;
                let offered = read_offered(&reply.body, call.service.version())
                    .map_err(|error| unreadable(call, &error))?;
                self.inner.offered.lock().insert(call.service, offered);
                offered
            }
        };
        offered.and_then(|offered| wanted.choose(offered)).ok_or_else(|| {
            let offered = offered.map(|offered| (offered.min, offered.max));
            call.error(ErrorKind::Microversion { wanted, offered })
        })
    }

    /// Sends a request to a URL, again where that is safe.
    pub(crate) async fn send_with(
        &self,
        call: &Call,
        url: &Url,
        token: Option<&Token>,
        version: Option<Microversion>,
    ) -> Result<Reply, Error> {
        let mut attempts = 0;
        loop {
            let begun = tokio::time::Instant::now();
            let outcome = self.exchange(call, url, token, version).await;
            let took = begun.elapsed();
            let error = match outcome {
                Ok(reply) => {
                    self.inner.metrics.exchanged(call, took, None, attempts > 0);
                    let request_id = reply.headers.get("x-openstack-request-id");
                    tracing::debug!(
                        service = %call.service, method = %call.method, path = call.path,
                        status = reply.status, ?request_id, ?took, "openstack answered"
                    );
                    return Ok(reply);
                }
                Err(kind) => call.error(kind),
            };
            self.inner.metrics.exchanged(call, took, Some(&error), attempts > 0);
            tracing::debug!(%error, ?took, "openstack gave no result");
            attempts += 1;
            if !self.inner.policy.may_repeat(&error, attempts) {
                return Err(error);
            }
            let asked = error.refusal().and_then(|refusal| refusal.retry_after);
            tokio::time::sleep(self.inner.policy.pause(attempts, asked)).await;
        }
    }

    async fn exchange(
        &self,
        call: &Call,
        url: &Url,
        token: Option<&Token>,
        version: Option<Microversion>,
    ) -> Result<Reply, ErrorKind> {
        let inner = &self.inner;
        let secrets = [
            inner.cloud.credentials.secret().expose(),
            token.map(|token| token.value.expose()).unwrap_or_default(),
        ];
        let Ok(_permit) = inner.permits.acquire().await else {
            return Err(ErrorKind::Unreachable("the client is closed".to_owned()));
        };
        let request = request(call, url, token, version)
            .map_err(|error| ErrorKind::Unwritable(redact(&tidy(&error.to_string()), secrets)))?;
        let timeout = inner.policy.timeout;
        let response = match tokio::time::timeout(timeout, inner.transport.send(request)).await {
            Err(_) => return Err(ErrorKind::TimedOut(timeout)),
            Ok(Err(TransportError { message, never_sent })) => {
                let message = redact(&tidy(&message), secrets);
                return Err(match never_sent {
                    true => ErrorKind::Unreachable(message),
                    false => ErrorKind::Lost(message),
                });
            }
            Ok(Ok(response)) => response,
        };
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        if body.len() > inner.policy.longest_answer {
            let why = format!("it is longer than {} bytes", inner.policy.longest_answer);
            return Err(ErrorKind::Unreadable { status, why });
        }
        // 300 is how services offer their versions.
        if head.status.is_success() || status == 300 && call.path.is_empty() {
            return Ok(Reply { status, headers: head.headers, body });
        }
        let mut refusal = read_refusal(call.service, status, &head.headers, &body);
        refusal.text = redact(&refusal.text, secrets);
        Err(ErrorKind::Refused(refusal))
    }

    /// The decoded body of an answer, or what is under one of its keys.
    pub(crate) async fn read<T: serde::de::DeserializeOwned>(
        &self,
        call: &Call,
        key: Option<&str>,
    ) -> Result<T, Error> {
        let reply = self.send(call).await?;
        open(call, &reply, key)
    }
}

/// The decoded body, or what is under one of its keys.
pub(crate) fn open<T: serde::de::DeserializeOwned>(
    call: &Call,
    reply: &Reply,
    key: Option<&str>,
) -> Result<T, Error> {
    let Some(key) = key else {
        return serde_json::from_slice(&reply.body).map_err(|error| unreadable(call, &error));
    };
    let mut fields: BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_slice(&reply.body).map_err(|error| unreadable(call, &error))?;
    match fields.remove(key) {
        Some(value) => serde_json::from_str(value.get()).map_err(|error| unreadable(call, &error)),
        None => {
            let why = format!("there is no {key} in it");
            Err(call.error(ErrorKind::Unreadable { status: reply.status, why }))
        }
    }
}

/// serde's errors name fields and types.
pub(crate) fn unreadable(call: &Call, error: &serde_json::Error) -> Error {
    call.error(ErrorKind::Unreadable { status: 200, why: tidy(&error.to_string()) })
}

fn request(
    call: &Call,
    url: &Url,
    token: Option<&Token>,
    version: Option<Microversion>,
) -> Result<Request<Bytes>, http::Error> {
    let mut builder = Request::builder()
        .method(call.method.clone())
        .uri(url.as_str())
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("capstan/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = token {
        let mut value = header::HeaderValue::from_str(token.value.expose())?;
        value.set_sensitive(true);
        builder = builder.header("x-auth-token", value);
    }
    if let Some(version) = version {
        let word = call.service.microversion_word();
        builder = builder.header("openstack-api-version", format!("{word} {version}"));
        if call.service == Service::Compute {
            // What servers before 2.27 read.
            builder = builder.header("x-openstack-nova-api-version", version.to_string());
        }
    }
    match &call.body {
        Body::None => builder.body(Bytes::new()),
        Body::Json(body) => builder.header(header::CONTENT_TYPE, "application/json").body(body.clone()),
        Body::Other(kind, body) => builder.header(header::CONTENT_TYPE, *kind).body(body.clone()),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("cloud", &self.inner.cloud).finish_non_exhaustive()
    }
}
