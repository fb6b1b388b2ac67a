//! Calls to extension servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::Cluster;
use capstan_capi_types::runtime::hook::{
    DEFAULT_TIMEOUT_SECONDS, DiscoveryResponse, FAILURE, Response, SUCCESS,
};
use capstan_capi_types::runtime::{ExtensionConfig, ExtensionHandler, Hook};
use capstan_controller::{ApiError, Client, ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta};
use capstan_schema::bounded::cut;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::kept::{Digested, KeptResponses};
use crate::post::{Post, PostError};
use crate::registry::{Registration, Registry};
use crate::{discovery, namespace};

/// Most bytes of a server's message that are repeated.
const REPEATED: usize = 1024;

/// Why a hook has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    /// No server has a handler of this name.
    #[error(
        "extension handler {0:?} has not been registered: check the ExtensionConfig and its Discovered condition"
    )]
    NotRegistered(String),
    /// The handler answers another hook.
    #[error("extension handler {handler:?} does not answer {hook}")]
    OtherHook { handler: String, hook: Hook },
    /// The server is not called for this namespace.
    #[error("namespaceSelector of extension handler {handler:?} does not match namespace {namespace}")]
    NotSelected { handler: String, namespace: String },
    /// It is not known yet which hooks a server answers.
    #[error("handlers of ExtensionConfig {0} are not discovered yet")]
    NotDiscovered(String),
    #[error("failed to call extension handler {handler:?}: {why}")]
    CallFailed { handler: String, why: String },
    /// The server refused.
    #[error("extension handler {handler:?} responded with status {status:?} and message {message:?}")]
    Refused { handler: String, status: String, message: String },
    /// A hook that one server answers has several.
    #[error("found multiple {hook} hooks ({handlers}): only one hook is supported")]
    Several { hook: Hook, handlers: String },
    /// No server answers the hook.
    #[error("no extensions registered for {0} hook")]
    NoHandler(Hook),
    /// The response has the expected shape and says what cannot be.
    #[error("response of extension handler {handler:?} cannot be used: {why}")]
    Unusable { handler: String, why: String },
    /// The response does not have the expected shape.
    #[error("response of extension handler {handler:?} cannot be read: {why}")]
    Unreadable { handler: String, why: String },
    /// The API server did not respond.
    #[error("reading from the API server failed: {0}")]
    Api(#[from] ApiError),
    /// A cache cannot be read.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

/// A successful response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub handler: String,
    pub common: Response,
    body: Arc<Value>,
}

impl Reply {
    /// What the response has beside [`Response`].
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ExtensionError> {
        T::deserialize(&*self.body).map_err(|error| ExtensionError::Unreadable {
            handler: self.handler.clone(),
            why: cut(error, REPEATED),
        })
    }
}

/// Answers of all handlers of a lifecycle hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// Not zero: the operation must wait, and the hook is called again after this time.
    pub retry_after_seconds: i32,
    /// Messages of the handlers.
    pub message: String,
}

impl HookAnswer {
    pub fn is_blocking(&self) -> bool {
        self.retry_after_seconds > 0
    }
}

/// Whether an earlier response to the same request may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy<'a> {
    /// For hooks without side effects.
    Reuse,
    /// The same, for questions that are the same although the request differs.
    ReuseAs(&'a str),
    Call,
}

/// Calls extension servers and keeps responses.
#[derive(Default)]
pub struct Extensions {
    /// None in a simulation: a request would leave simulated time.
    post: Option<Arc<dyn Post>>,
    responses: Mutex<KeptResponses>,
    /// Hooks that block, by cluster or machine.
    blocking: Mutex<BTreeMap<(Key, Hook), Blocking>>,
}

/// A hook that blocks.
struct Blocking {
    /// Of that object: another one of the same name is asked for anew.
    uid: String,
    /// Not called again before.
    until: Timestamp,
    message: String,
}

impl Extensions {
    pub fn new(post: Arc<dyn Post>) -> Self {
        Self { post: Some(post), ..Self::default() }
    }

    /// Calls nobody, for simulations: lifecycle hooks pass, handlers stay as they are known, and what only a server
    /// can answer fails.
    pub fn simulated() -> Self {
        Self::default()
    }

    /// Discovers the handlers of a server.
    pub async fn discover(&self, config: &ExtensionConfig) -> Result<Vec<ExtensionHandler>, String> {
        let name = config.metadata.name.as_str();
        let failed = |why: String| format!("failed to discover extension {name:?}: {why}");
        let (api_version, kind) = Hook::Discovery.request_type();
        let request = json!({"apiVersion": api_version, "kind": kind});
        let Some(post) = &self.post else { return Ok(config.status.handlers.clone()) };
        let server = &config.spec.client_config;
        let timeout = Duration::from_secs(DEFAULT_TIMEOUT_SECONDS.unsigned_abs().into());
        let body = post.post(server, &Hook::Discovery.path(""), &request, timeout).await;
        let body = Arc::new(body.map_err(|error| failed(cut(error, REPEATED)))?);
        let reply = accepted(name, body).map_err(|error| failed(error.to_string()))?;
        let response: DiscoveryResponse = reply.read().map_err(|error| failed(error.to_string()))?;
        discovery::handlers(name, &response).map_err(|why| failed(cut(why, REPEATED)))
    }

    /// Calls a handler by name, for an object of a namespace. `settings` override those of the ExtensionConfig.
    pub async fn call(
        &self,
        view: &View,
        object_namespace: &str,
        (hook, handler): (Hook, &str),
        settings: &BTreeMap<String, String>,
        request: &Value,
        cache: CachePolicy<'_>,
    ) -> Result<Reply, ExtensionError> {
        let registration = registered(view, object_namespace, hook, handler).await?;
        self.call_registered(&registration, settings, request, cache, view.now()).await
    }

    /// Calls a handler by name, and keeps its response for the subject if `check` finds it usable.
    pub async fn call_checked<T>(
        &self,
        view: &View,
        object_namespace: &str,
        (hook, handler): (Hook, &str),
        (subject, request): (&str, &Value),
        check: impl FnOnce(&Reply) -> Result<T, String> + Send,
    ) -> Result<T, ExtensionError> {
        let registration = registered(view, object_namespace, hook, handler).await?;
        self.checked(&registration, (subject, request), view.now(), check).await
    }

    pub(crate) async fn checked<T>(
        &self,
        registration: &Registration,
        (subject, request): (&str, &Value),
        now: Timestamp,
        check: impl FnOnce(&Reply) -> Result<T, String> + Send,
    ) -> Result<T, ExtensionError> {
        let (settings, cache) = (BTreeMap::new(), CachePolicy::ReuseAs(subject));
        let reply = self.call_registered(registration, &settings, request, cache, now).await?;
        check(&reply).map_err(|why| {
            self.responses.lock().remove(&digest(registration, subject));
            ExtensionError::Unusable { handler: reply.handler.clone(), why: cut(why, REPEATED) }
        })
    }

    pub(crate) async fn call_registered(
        &self,
        registration: &Registration,
        settings: &BTreeMap<String, String>,
        request: &Value,
        cache: CachePolicy<'_>,
        now: Timestamp,
    ) -> Result<Reply, ExtensionError> {
        let handler = registration.handler.name.as_str();
        let body = complete(registration, settings, request);
        let key = match cache {
            CachePolicy::Call => None,
            CachePolicy::Reuse => Some(digest(registration, &body.to_string())),
            CachePolicy::ReuseAs(subject) => Some(digest(registration, subject)),
        };
        if let Some(key) = key
            && let Some(response) = self.responses.lock().get(&key, now)
        {
            return accepted(handler, response);
        }
        let server = &registration.config.spec.client_config;
        let path = registration.hook.path(registration.own_name());
        let posted = match &self.post {
            Some(post) => post.post(server, &path, &body, registration.timeout()).await,
            None => Err(PostError::Misconfigured("servers are not called in a simulation".to_owned())),
        };
        let response = match posted {
            Ok(response) => Arc::new(response),
            Err(PostError::Failed(_)) if registration.ignores_failures() => {
                return accepted(handler, Arc::new(json!({"status": SUCCESS})));
            }
            Err(error) => {
                let why = cut(error, REPEATED);
                return Err(ExtensionError::CallFailed { handler: handler.to_owned(), why });
            }
        };
        let reply = accepted(handler, response.clone())?;
        if let Some(key) = key {
            self.responses.lock().keep(key, now, response);
        }
        Ok(reply)
    }

    /// Calls all handlers of a lifecycle hook, one after the other, until one fails. A hook that blocks is not called
    /// again before its time.
    pub async fn call_all(
        &self,
        view: &View,
        cluster: &Cluster,
        hook: Hook,
        request: &Value,
    ) -> Result<HookAnswer, ExtensionError> {
        if self.post.is_none() {
            return Ok(HookAnswer::default());
        }
        let matching = self.matching(view, &cluster.metadata.namespace, hook).await?;
        if matching.is_empty() {
            self.blocking.lock().remove(&(cluster.key(), hook));
            return Ok(HookAnswer::default());
        }
        self.call_unless_blocking(view, &cluster.metadata, &matching, hook, request).await
    }

    /// The handlers of a hook for a namespace. None in a simulation.
    pub(crate) async fn matching(
        &self,
        view: &View,
        object_namespace: &str,
        hook: Hook,
    ) -> Result<Vec<Registration>, ExtensionError> {
        let mut matching = Vec::new();
        if self.post.is_none() {
            return Ok(matching);
        }
        let registry = registry(view)?;
        let client: &Client = view.client();
        for config in registry.undiscovered() {
            if namespace::is_selected(config, object_namespace, client).await? {
                return Err(ExtensionError::NotDiscovered(config.metadata.name.clone()));
            }
        }
        for registration in registry.of_hook(hook) {
            if namespace::is_selected(&registration.config, object_namespace, client).await? {
                matching.push(registration.clone());
            }
        }
        Ok(matching)
    }

    /// Nobody is called.
    pub(crate) fn is_simulated(&self) -> bool {
        self.post.is_none()
    }

    /// Calls handlers of a hook on behalf of an object, unless one wanted to be called later.
    pub(crate) async fn call_unless_blocking(
        &self,
        view: &View,
        object: &ObjectMeta,
        handlers: &[Registration],
        hook: Hook,
        request: &Value,
    ) -> Result<HookAnswer, ExtensionError> {
        let blocked = (object.key(), hook);
        let uid = &object.uid;
        if let Some(known) = self.blocking.lock().get(&blocked).filter(|known| known.uid == *uid) {
            let left = known.until.duration_since(view.now()).as_millis();
            if left > 0 {
                let seconds = i32::try_from(left.unsigned_abs().div_ceil(1000)).unwrap_or(i32::MAX);
                return Ok(HookAnswer { retry_after_seconds: seconds, message: known.message.clone() });
            }
        }
        let mut replies = Vec::new();
        for registration in handlers {
            let settings = BTreeMap::new();
            let call = self.call_registered(registration, &settings, request, CachePolicy::Call, view.now());
            replies.push(call.await?.common);
        }
        let answer = aggregated(&replies);
        let mut blocking = self.blocking.lock();
        match answer.is_blocking() {
            true => {
                let seconds = u64::from(answer.retry_after_seconds.unsigned_abs());
                let until = view.now().saturating_add(Duration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
                let (uid, message) = (uid.clone(), answer.message.clone());
                blocking.insert(blocked, Blocking { uid, until, message });
            }
            false => {
                blocking.remove(&blocked);
            }
        }
        Ok(answer)
    }

    /// Drops what is kept about a cluster or a machine.
    pub fn forget(&self, object: &Key) {
        self.blocking.lock().retain(|(known, _), _| known != object);
    }
}

/// The handler of a name, for a namespace.
async fn registered(
    view: &View,
    object_namespace: &str,
    hook: Hook,
    handler: &str,
) -> Result<Registration, ExtensionError> {
    let registry = registry(view)?;
    let Some(registration) = registry.get(handler) else {
        return Err(ExtensionError::NotRegistered(handler.to_owned()));
    };
    if registration.hook != hook {
        return Err(ExtensionError::OtherHook { handler: handler.to_owned(), hook });
    }
    if !namespace::is_selected(&registration.config, object_namespace, view.client()).await? {
        let (handler, namespace) = (handler.to_owned(), object_namespace.to_owned());
        return Err(ExtensionError::NotSelected { handler, namespace });
    }
    Ok(registration.clone())
}

/// The handlers of all servers. The caller's controller must read ExtensionConfigs.
fn registry(view: &View) -> Result<Registry, ObserveError> {
    Ok(Registry::of(&view.list::<ExtensionConfig>("")?))
}

/// The request with its type and settings.
fn complete(registration: &Registration, settings: &BTreeMap<String, String>, request: &Value) -> Value {
    let (api_version, kind) = registration.hook.request_type();
    let mut all = registration.config.spec.settings.clone();
    all.extend(settings.iter().map(|(key, text)| (key.clone(), text.clone())));
    let mut body = request.clone();
    body["apiVersion"] = api_version.into();
    body["kind"] = kind.into();
    if !all.is_empty() {
        body["settings"] = json!(all);
    }
    body
}

fn digest(registration: &Registration, question: &str) -> Digested {
    let meta = &registration.config.metadata;
    let mut hasher = Sha256::new();
    for part in [&registration.handler.name, &meta.uid, &*meta.generation.to_string(), question] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}

/// A response, if its status is success.
fn accepted(handler: &str, body: Arc<Value>) -> Result<Reply, ExtensionError> {
    let handler = handler.to_owned();
    let common = match <Response as serde::Deserialize>::deserialize(&*body) {
        Ok(common) => common,
        Err(error) => return Err(ExtensionError::Unreadable { handler, why: cut(error, REPEATED) }),
    };
    if common.status != SUCCESS {
        let status = if common.status == FAILURE { common.status } else { cut(common.status, 64) };
        let message = cut(common.message, REPEATED);
        return Err(ExtensionError::Refused { handler, status, message });
    }
    Ok(Reply { handler, common, body })
}

/// The shortest time of those that block, and all messages.
fn aggregated(replies: &[Response]) -> HookAnswer {
    let seconds = replies.iter().map(|reply| reply.retry_after_seconds).filter(|seconds| *seconds > 0).min();
    let messages: Vec<&str> =
        replies.iter().map(|reply| reply.message.as_str()).filter(|text| !text.is_empty()).collect();
    HookAnswer {
        retry_after_seconds: seconds.unwrap_or_default(),
        message: cut(messages.join(", "), REPEATED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(seconds: i32, message: &str) -> Response {
        Response { status: SUCCESS.to_owned(), message: message.to_owned(), retry_after_seconds: seconds }
    }

    #[test]
    fn answers_of_several_handlers_are_one() {
        for (replies, seconds, message) in [
            (vec![], 0, ""),
            (vec![reply(0, ""), reply(0, "fine")], 0, "fine"),
            (vec![reply(30, "later"), reply(0, ""), reply(10, "soon")], 10, "later, soon"),
            (vec![reply(-5, "")], 0, ""),
        ] {
            let answer = aggregated(&replies);
            assert_eq!((answer.retry_after_seconds, &*answer.message), (seconds, message));
        }
    }

    #[test]
    fn only_success_is_accepted() {
        for (body, problem) in [
            (json!({"status": "Success", "message": "ok"}), None),
            (json!({"status": "Failure", "message": "no"}), Some("status \"Failure\" and message \"no\"")),
            (json!({"status": "Maybe"}), Some("status \"Maybe\"")),
            (json!({}), Some("status \"\"")),
            (json!({"status": 1}), Some("cannot be read")),
        ] {
            let found = accepted("h.ext", Arc::new(body.clone()));
            match problem {
                None => assert!(found.is_ok(), "{body}"),
                Some(problem) => {
                    let error = found.expect_err("refused").to_string();
                    assert!(error.contains(problem), "{error}");
                }
            }
        }
    }
}
