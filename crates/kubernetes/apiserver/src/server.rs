//! The server: startup, and the handler chain of every request.
//!
//! ```text
//! request ─► authentication, impersonation ─► authorization ─► routing
//!            ├─► documents: discovery, OpenAPI, version, health, metrics
//!            └─► resources: decode ─► admit ─► validate ─► store ─► shape ─► encode
//! ```

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, Request, header, request};
use ::http_body::Body;
use bytes::Bytes;
use capstan_pki::Pki;
use capstan_store::Store;
use tokio::net::TcpListener;

use crate::admission::{AuditAnnotations, Warnings};
use crate::audit::{self, Record};
use crate::auth::{Attributes, Peer, User};
use crate::call::Call;
use crate::config::{Config, Policy, StartError};
use crate::digest::Digest;
use crate::flow_control::Classification;
use crate::health::Stage;
use crate::http::body;
use crate::http::info::RequestInfo;
use crate::http::names;
use crate::http::options::Query;
use crate::memory::RequestMemory;
use crate::metrics::Labels;
use crate::negotiation::{self, Endpoint};
use crate::parts::ServerParts;
use crate::portforward::Upgrade;
use crate::registry::{Registry, Resource};
use crate::reply::{self, Reply};
use crate::route::{self, Route, Verb};
use crate::status::{Result, Status};
use crate::verbs::{self, Answer};
use crate::{bootstrap, compression, controllers, documents, front, respond, reviews, subresources};

/// A Kubernetes API server. Cheap to clone; shuts down when the last clone is dropped.
#[derive(Clone)]
pub struct Server {
    parts: Arc<ServerParts>,
}

impl Server {
    /// Opens the store, assembles a server, starts its controllers and creates the bootstrap objects. Must be called
    /// inside a tokio runtime.
    pub async fn start(mut config: Config, pki: Arc<Pki>) -> Result<Self, StartError> {
        let (store, policy) = config.open_store()?;
        let (followers, changes) = controllers::channels();
        let parts = Arc::new(ServerParts::assemble(config, store, pki, followers)?);
        parts.startup.reach(Stage::Assembled);
        crate::crd::controller::load(&parts);
        parts.startup.reach(Stage::Definitions);
        controllers::start(&Arc::downgrade(&parts), changes);
        parts.startup.reach(Stage::Controllers);
        if let Policy::Reconcile(place) = policy {
            bootstrap::policy(&parts).await.map_err(StartError::Bootstrap)?;
            if let Some(place) = place {
                place.0.get_or_init(|| parts.store.seed());
            }
        }
        parts.startup.reach(Stage::FlowControl);
        bootstrap::objects(&parts).await.map_err(StartError::Bootstrap)?;
        parts.startup.reach(Stage::Done);
        Ok(Self { parts })
    }

    /// Serves on a listener, with a certificate for `names`, until `stop` resolves; then closes the store.
    pub async fn serve(
        self,
        listener: TcpListener,
        names: &[String],
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), StartError> {
        let tls = self.pki().server_config(names)?;
        front::serve(listener, tls, self.pki().clone(), self.clone(), stop).await;
        self.store().close().await;
        Ok(())
    }

    pub fn pki(&self) -> &Arc<Pki> {
        &self.parts.pki
    }

    pub fn store(&self) -> &Store<Digest> {
        &self.parts.store
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> &ServerParts {
        &self.parts
    }

    pub(crate) fn connections(&self) -> &Arc<front::Connections> {
        &self.parts.connections
    }

    /// Adds metrics in the Prometheus text format to `/metrics`.
    pub fn show_metrics(&self, page: impl Fn() -> String + Send + Sync + 'static) {
        self.parts.metrics.show_also(Box::new(page));
    }

    /// Handles one request of a client, which is whoever its certificate or its headers prove.
    pub fn handle<B>(&self, request: Request<B>) -> impl Future<Output = Reply>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.handle_of(None, request)
    }

    /// Handles one request of a caller in this process, who needs no credential: those in its headers are not read.
    pub fn handle_as<B>(&self, user: impl Into<Arc<User>>, request: Request<B>) -> impl Future<Output = Reply>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.handle_of(Some(user.into()), request)
    }

    async fn handle_of<B>(&self, caller: Option<Arc<User>>, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = tokio::time::Instant::now();
        let (head, body) = request.into_parts();
        let info = RequestInfo::parse(&head.method, &head.uri);
        let query = Query::parse(head.uri.query());
        let in_flight = self.parts.metrics.begin(&info);
        let dry_run = query.get("dryRun") == Some("All");
        let labels = Labels::new(&info, is_apply(&head.headers), dry_run);
        let mut about = About::default();
        let warnings = &about.warnings.clone();
        let id = audit::request_id(&head.headers, &self.parts.env);
        let audit = self.parts.audit.as_ref();
        about.record = audit.map(|audit| Record::new(audit, &self.parts.env, &id, &head, &info));
        let (mut reply, failure) = match self.answer(caller, &head, info, query, body, &mut about).await {
            Ok(reply) => (reply, None),
            Err(status) => {
                let accept = text(&head.headers, header::ACCEPT);
                let accepted = negotiation::accept_error(accept.as_deref(), wants_pretty(&head));
                let mut reply = reply::failure(&status, accepted);
                if about.denied {
                    reply::no_sniffing(&mut reply);
                }
                (reply, Some(status))
            }
        };
        drop(in_flight);
        if let Some(mut record) = about.record.take() {
            record.annotate(about.annotations.take());
            let confidential = |resource: &Arc<Resource>| self.parts.is_confidential(resource);
            let failure = match failure {
                Some(status) if about.resource.as_ref().is_some_and(confidential) => {
                    Some(audit::without_values(status))
                }
                other => other,
            };
            record.answered(failure.as_ref(), &mut reply).await;
        }
        let metrics = &self.parts.metrics;
        metrics.answered(&labels, about.resource.as_deref(), reply.status(), started.elapsed());
        if compression::accepted(&head.headers) {
            compression::compress(&mut reply);
        }
        let headers = reply.headers_mut();
        if let Some(classification) = &about.classification {
            classification.set_headers(headers);
        }
        for text in warnings.header_values() {
            // As upstream, non-ASCII text is sent as UTF-8.
            if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(&names::AUDIT_ID, id);
        }
        if head.method == Method::HEAD {
            reply::without_body(&mut reply);
        }
        reply
    }

    /// How many objects the collection of a request has.
    fn stored_objects(&self, info: &RequestInfo) -> usize {
        let registry = self.parts.registry.load();
        let Some(resource) = registry.find(&info.group, &info.version, &info.resource) else { return 0 };
        let prefix = match info.namespace.as_str() {
            namespace if resource.namespaced && !namespace.is_empty() => format!("{namespace}/"),
            _ => String::new(),
        };
        self.parts.store.snapshot(&resource.bucket).count(&prefix)
    }

    /// Handles a request, of a `caller` in this process if there is one. `about` collects what the metrics and the audit log
    /// need.
    async fn answer<B>(
        &self,
        caller: Option<Arc<User>>,
        head: &request::Parts,
        info: RequestInfo,
        query: Query,
        request_body: B,
        about: &mut About,
    ) -> Result<Reply>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        check_timeout(&info, &query)?;

        let warnings = &about.warnings.clone();
        let user = match caller {
            Some(user) => user,
            None => {
                // The listener stores the client's verified identity here.
                let peer = head.extensions.get::<Arc<Peer>>();
                self.parts.authenticator.prepare(&head.headers).await;
                match self.parts.authenticator.authenticate(&head.headers, peer.map(|p| &**p), warnings) {
                    Ok(user) => user,
                    Err(status) => {
                        if let Some(record) = &mut about.record {
                            record.not_authenticated(&info, &status).await;
                        }
                        return Err(status);
                    }
                }
            }
        };
        if let Some(record) = &mut about.record {
            record.identified(&user, &info).await;
        }
        let mut request = attributes(&info, user);
        let impersonated = crate::auth::impersonated(&head.headers, &request, &*self.parts.authorizer)
            .inspect_err(|_| about.denied = true)?;
        if let Some(user) = impersonated {
            if let Some(record) = &mut about.record {
                record.impersonates(&user);
            }
            request.user = Arc::new(user);
        }
        let objects = || self.stored_objects(&info);
        let (classification, seat) =
            self.parts.flow_control.enter(&info, &query, &request.user, objects).await;
        about.classification = classification;
        let _seat = match seat {
            Ok(seat) => seat,
            Err(too_many) => return Ok(too_many.reply()),
        };
        let decision = self.parts.authorizer.authorize(&request);
        if let Some(record) = &mut about.record {
            record.authorized(decision.allowed(), decision.reason());
        }
        if !decision.allowed() {
            about.denied = true;
            return Err(crate::auth::forbidden(&request, decision.reason()));
        }
        let user = request.user;

        if info.has_empty_segment {
            return route::not_found(&info);
        }
        if !info.is_resource {
            self.parts.definitions.served().await;
            return documents::serve(&self.parts, head, &info, &user).await;
        }
        let find = |registry: &Registry| registry.find(&info.group, &info.version, &info.resource).cloned();
        let mut registry = self.parts.registry.load_full();
        let mut resource = find(&registry);
        if resource.is_none() {
            self.parts.definitions.served().await;
            registry = self.parts.registry.load_full();
            resource = find(&registry);
        }
        let Some(resource) = resource else {
            return route::not_found(&info);
        };
        about.resource = Some(resource.clone());
        let route = match Route::resolve(&resource, &info) {
            Ok(route) => route,
            Err(refusal) => return refusal.reply(&resource, &info),
        };
        if let Some(text) = resource.behaviour.as_ref().and_then(|b| b.deprecation.as_deref()) {
            warnings.add(text);
        } else if resource.group.is_empty() && resource.plural == "endpoints" {
            warnings.add("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
        }
        let endpoint = endpoint(&route);
        let accept = text(&head.headers, header::ACCEPT);
        let mut accepted = if route.verb() == Verb::Watch {
            negotiation::accept_watch(accept.as_deref(), endpoint)?
        } else {
            negotiation::accept(accept.as_deref(), endpoint)?
        };
        accepted.pretty |= wants_pretty(head);
        let call = Arc::new(Call {
            parts: self.parts.clone(),
            registry,
            route,
            user,
            query,
            user_agent: text(&head.headers, header::USER_AGENT).unwrap_or_default(),
            content_type: text(&head.headers, header::CONTENT_TYPE),
            accepted,
            warnings: warnings.clone(),
            annotations: about.annotations.clone(),
            upgrade: Upgrade::wanted(head),
            memory: RequestMemory::default(),
        });
        let (body, _room) = if matches!(head.method, Method::GET | Method::HEAD) {
            (Bytes::new(), None)
        } else {
            let deadline = tokio::time::Instant::now() + body::TIMEOUT;
            let room = &self.parts.body_room;
            let (body, received) = room.receiving.read(&call.user, request_body, deadline).await?;
            let admitted = room.admit(&body, deadline).await?;
            // From here on, the text counts with what it is decoded to.
            drop(received);
            (body, admitted)
        };
        if let Some(record) =
            about.record.as_mut().filter(|record| record.wants_request() && !body.is_empty())
            && let Some(object) = call.body_as_sent(&body)
        {
            record.request_object(object);
        }
        let answer = dispatch(&call, &body).await?;
        respond::respond(&call, answer)
    }
}

/// What is known of a request so far, for metrics and the audit log.
#[derive(Default)]
struct About {
    resource: Option<Arc<Resource>>,
    warnings: Warnings,
    annotations: AuditAnnotations,
    classification: Option<Classification>,
    record: Option<Record>,
    /// Whether the authorizer refused it.
    denied: bool,
}

/// The endpoint type for content negotiation.
fn endpoint(route: &Route) -> Endpoint {
    match (route.resource().custom().is_some(), route.verb()) {
        (true, _) => Endpoint::Custom,
        (false, Verb::List | Verb::Watch) => Endpoint::BuiltInCollection,
        (false, _) => Endpoint::BuiltIn,
    }
}

fn attributes(info: &RequestInfo, user: Arc<User>) -> Attributes {
    if !info.is_resource {
        return Attributes {
            user,
            verb: info.verb.clone(),
            path: info.path.clone(),
            ..Attributes::default()
        };
    }
    Attributes {
        user,
        verb: info.verb.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        path: info.path.clone(),
    }
}

async fn dispatch(call: &Arc<Call>, body: &Bytes) -> Result<Answer> {
    if let Some(subresource) = call.route.subresource() {
        return subresources::serve(call, subresource, body).await;
    }
    match call.verb() {
        Verb::Create if reviews::is_review(call.resource()) => {
            reviews::create(call, &call.parts.authenticator, body).await
        }
        Verb::Get => verbs::read::get(call).await,
        Verb::List => verbs::list::list(call).await,
        Verb::Watch => verbs::watch::watch(call.clone()).await,
        Verb::Create => verbs::create::create(call, body).await,
        Verb::Update => verbs::update::update(call, body).await,
        Verb::Patch => verbs::patch::patch(call, body).await,
        Verb::Delete => verbs::delete::delete(call, body).await,
        Verb::DeleteCollection => verbs::delete::delete_collection(call, body).await,
    }
}

/// The `timeout` parameter must be a valid duration, even if it is not used.
fn check_timeout(info: &RequestInfo, query: &Query) -> Result<()> {
    if info.verb == "watch" {
        return Ok(());
    }
    match query.get("timeout") {
        None | Some("") => Ok(()),
        Some(text) if is_go_duration(text) => Ok(()),
        Some(text) => Err(Status::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {text:?}"
        ))),
    }
}

/// Whether Go's `time.ParseDuration` accepts the text.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        if digits == 0 || rest[..digits].parse::<f64>().is_err() {
            return false;
        }
        rest = &rest[digits..];
        let Some(unit) = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|u| rest.starts_with(u))
            .max_by_key(|u| u.len())
        else {
            return false;
        };
        rest = &rest[unit.len()..];
    }
    true
}

/// Whether a client wants indented JSON, by its query or its name.
fn wants_pretty(head: &request::Parts) -> bool {
    let agent = head.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    negotiation::pretty(head.uri.query(), agent)
}

fn is_apply(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|kind| kind.starts_with(b"application/apply-patch"))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
}

impl<B> tower_service::Service<Request<B>> for Server
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Reply;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Reply, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_recognised_as_go_does() {
        for good in ["0", "1s", "1m30s", "-5ms", "1.5h", "3µs"] {
            assert!(is_go_duration(good), "{good}");
        }
        for bad in ["", "1", "s", "1x", "abc", "1s2"] {
            assert!(!is_go_duration(bad), "{bad}");
        }
    }
}
