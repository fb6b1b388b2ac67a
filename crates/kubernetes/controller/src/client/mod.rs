//! A small client of any Kubernetes API server, embedded or remote.
//!
//! ```text
//! Client ── request ──▶ Gate (may fail, delay or crash it in a simulation) ──▶ Transport ─┬─ in process: no socket
//!                                                                                        └─ remote: HTTP over TLS
//! ```
//!
//! Controllers never see which. Reads of controllers come from caches; this client lists and watches for them,
//! writes, and reads what is not worth a cache.

mod error;
mod gate;
mod limits;
mod options;
mod read;
mod served;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use capstan_object::{Key, Object};
pub use capstan_transport::{
    Body, Events, LocalServer, Transport, TransportError, WatchEvent as ServerEvent,
};
use http::{Method, Request, Response, header};
use serde::Deserialize;
use serde_json::Value;

pub use error::ApiError;
pub(crate) use error::shortened;
pub use gate::{EffectOf, Gate, GateVerdict};
pub use limits::{Budget, Limit, LimitExceeded, Limits, Share, Sizes, Times};
pub use options::{Deletion, ListOptions, Patch, Propagation};
pub(crate) use watch::Identity;
pub use watch::{WatchEvent, WatchStream, WatchedObject};

use crate::KindName;
pub(crate) use limits::{Charge, Exhausted, Weight, WorkloadBudgets};
use read::read_all;

/// A client of one API server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    gate: Option<Arc<dyn Gate>>,
    /// Who writes: user agent and field manager.
    manager: Arc<str>,
    limits: Arc<Limits>,
}

/// The answer to a write: the object as it is now.
#[derive(Debug, Clone)]
pub struct Reply {
    /// JSON of the object, or of a `Status` where an object was deleted at once.
    pub bytes: Bytes,
}

impl Reply {
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.bytes).map_err(ApiError::Decode)
    }
}

/// One page of a collection.
#[derive(Debug)]
pub struct List<T> {
    /// The objects.
    pub items: Vec<T>,
    /// Version of the collection.
    pub resource_version: String,
    /// Where the next page begins; empty at the end.
    pub next: String,
}

#[derive(Deserialize)]
struct RawList<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<T>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

impl Client {
    /// A client over a transport; `manager` names it in user agents and field ownership. Answers are limited as those of
    /// a management server are.
    pub fn new(transport: Arc<dyn Transport>, manager: &str) -> Self {
        Self { transport, gate: None, manager: manager.into(), limits: Arc::new(Limits::management()) }
    }

    /// A client of a server in this process, with all rights.
    pub fn in_process(server: impl LocalServer, manager: &str) -> Self {
        Self::new(server.privileged(manager), manager).limited(Limits::in_process())
    }

    /// The same client with other limits for answers.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits: Arc::new(limits), ..self }
    }

    /// What answers of the server may cost.
    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// The same client under another name.
    #[must_use]
    pub fn named(&self, manager: &str) -> Self {
        Self { manager: manager.into(), ..self.clone() }
    }

    /// The same client whose writes pass a gate.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    /// How its requests travel.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The gate its writes pass, if any.
    pub fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.as_ref()
    }

    /// The name writes are made under.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// An object, read from the server; `None` if there is none.
    pub async fn get<T: Object>(&self, key: &Key) -> Result<Option<T>, ApiError> {
        match self.get_raw(&T::KIND.into(), key).await? {
            Some(reply) => reply.parse().map(Some),
            None => Ok(None),
        }
    }

    /// An object of any kind, read from the server; `None` if there is none.
    pub async fn get_raw(&self, kind: &KindName, key: &Key) -> Result<Option<Reply>, ApiError> {
        match self.read(Method::GET, kind.object_path(key, None)).await {
            Ok(bytes) => Ok(Some(Reply { bytes })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Any document of the server, such as `/version`.
    pub async fn document(&self, path: &str) -> Result<Bytes, ApiError> {
        self.read(Method::GET, path.to_owned()).await
    }

    /// One page of a collection.
    pub async fn list<T: serde::de::DeserializeOwned>(
        &self,
        kind: &KindName,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<List<T>, ApiError> {
        let path = format!("{}{}", kind.collection_path(namespace), options.query());
        let bytes = self.read(Method::GET, path).await?;
        let raw: RawList<T> = serde_json::from_slice(&bytes).map_err(ApiError::Decode)?;
        Ok(List {
            items: raw.items.unwrap_or_default(),
            resource_version: raw.metadata.resource_version,
            next: raw.metadata.next,
        })
    }

    /// All objects of a kind, page by page.
    pub async fn list_all<T: Object>(
        &self,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Vec<T>, ApiError> {
        let mut options = self.paged(options.clone());
        let mut all = Vec::new();
        let mut charge = self.limits.charge();
        for _ in 0..self.limits.sizes().pages {
            let page: List<T> = self.list(&T::KIND.into(), namespace, &options).await?;
            if let Some(charge) = &mut charge {
                let weight = page.items.iter().map(Weight::of).sum();
                charge.grow(weight).map_err(|exhausted| self.limits.exhausted(exhausted))?;
            }
            all.extend(page.items);
            if page.next.is_empty() {
                return Ok(all);
            }
            options.next = page.next;
        }
        Err(self.too_many_pages())
    }

    /// Options that ask for a page of the size that fits this server.
    pub(crate) fn paged(&self, options: ListOptions) -> ListOptions {
        ListOptions { limit: Some(options.limit.unwrap_or(self.limits.sizes().page)), ..options }
    }

    pub(crate) fn too_many_pages(&self) -> ApiError {
        self.limits.exceeded(Limit::Pages(self.limits.sizes().pages))
    }

    /// Follows a collection.
    pub async fn watch(
        &self,
        kind: &KindName,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<WatchStream, ApiError> {
        let path = format!("{}{}", kind.collection_path(namespace), options.watch_query());
        let request = self.request(Method::GET, path, "", Bytes::new())?;
        let body = self.limits.in_time(async {
            let (head, body) = self.send(request).await?.into_parts();
            if !head.status.is_success() {
                let bytes = read_all(body, &self.limits).await?;
                return Err(ApiError::from_body(head.status.as_u16(), &bytes));
            }
            Ok(body)
        });
        Ok(WatchStream::new(body.await?, self.limits.clone()))
    }

    /// Creates an object in a namespace.
    pub async fn create(&self, kind: &KindName, namespace: &str, body: &Value) -> Result<Reply, ApiError> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let effect = EffectOf::Create { kind, key: &Key::new(namespace, name), body };
        let path = format!("{}?fieldManager={}", kind.collection_path(namespace), self.manager);
        self.write(Method::POST, path, "application/json", encode(body)?, effect).await
    }

    /// Creates a typed object.
    pub async fn create_object<T: Object>(&self, object: &T) -> Result<T, ApiError> {
        let body = capstan_object::to_value(object).map_err(ApiError::Encode)?;
        self.create(&T::KIND.into(), &object.metadata().namespace, &body).await?.parse()
    }

    /// Changes an object or one of its subresources.
    pub async fn patch(
        &self,
        kind: &KindName,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<Reply, ApiError> {
        let (content_type, body, force) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body, None),
            Patch::Json(body) => ("application/json-patch+json", body, None),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body, None),
            Patch::Apply { body, force } => ("application/apply-patch+yaml", body, Some(*force)),
        };
        let effect = EffectOf::Patch { kind, key, subresource, patch };
        let mut path = kind.object_path(key, subresource);
        path.push_str("?fieldManager=");
        path.push_str(&self.manager);
        if let Some(force) = force {
            path.push_str(if force { "&force=true" } else { "&force=false" });
        }
        self.write(Method::PATCH, path, content_type, encode(body)?, effect).await
    }

    /// What an object would become if this were applied (server-side, taking fields over from other managers). Nothing
    /// is written, so it is no effect and passes no gate.
    pub async fn dry_run_apply(&self, kind: &KindName, key: &Key, body: &Value) -> Result<Reply, ApiError> {
        let mut path = kind.object_path(key, None);
        path.push_str("?dryRun=All&force=true&fieldManager=");
        path.push_str(&self.manager);
        let request = self.request(Method::PATCH, path, "application/apply-patch+yaml", encode(body)?)?;
        Ok(Reply { bytes: self.exchange(request).await? })
    }

    /// Replaces an object or one of its subresources.
    pub async fn replace(
        &self,
        kind: &KindName,
        key: &Key,
        subresource: Option<&str>,
        body: &Value,
    ) -> Result<Reply, ApiError> {
        let effect = EffectOf::Replace { kind, key, subresource, body };
        let path = format!("{}?fieldManager={}", kind.object_path(key, subresource), self.manager);
        self.write(Method::PUT, path, "application/json", encode(body)?, effect).await
    }

    /// Posts to a subresource, such as `eviction` of a Pod or `token` of a ServiceAccount.
    pub async fn post_subresource(
        &self,
        kind: &KindName,
        key: &Key,
        subresource: &str,
        body: &Value,
    ) -> Result<Reply, ApiError> {
        let effect = EffectOf::Replace { kind, key, subresource: Some(subresource), body };
        let path = kind.object_path(key, Some(subresource));
        self.write(Method::POST, path, "application/json", encode(body)?, effect).await
    }

    /// Asks for the deletion of an object.
    pub async fn delete(&self, kind: &KindName, key: &Key, deletion: &Deletion) -> Result<Reply, ApiError> {
        let effect = EffectOf::Delete { kind, key, deletion };
        let body = encode(&deletion.body())?;
        self.write(Method::DELETE, kind.object_path(key, None), "application/json", body, effect).await
    }

    async fn read(&self, method: Method, path: String) -> Result<Bytes, ApiError> {
        let request = self.request(method, path, "", Bytes::new())?;
        self.exchange(request).await
    }

    /// A write, past the gate. Whatever the gate says, the effect is described to it once before and once after.
    async fn write(
        &self,
        method: Method,
        path: String,
        content_type: &str,
        body: Bytes,
        effect: EffectOf<'_>,
    ) -> Result<Reply, ApiError> {
        let request = self.request(method, path, content_type, body)?;
        let Some(gate) = &self.gate else {
            return Ok(Reply { bytes: self.exchange(request).await? });
        };
        match gate.before(&self.manager, &effect).await {
            GateVerdict::Proceed => {}
            GateVerdict::Fail(error) => return Err(error),
        }
        let result = self.exchange(request).await.map(|bytes| Reply { bytes });
        match gate.after(&self.manager, &effect, result.as_ref().map(|reply| &reply.bytes[..])).await {
            GateVerdict::Proceed => result,
            GateVerdict::Fail(error) => Err(error),
        }
    }

    /// Sends a request as it is, past no gate; returns the body of a success.
    pub async fn exchange(&self, request: Request<Bytes>) -> Result<Bytes, ApiError> {
        let answer = self.limits.in_time(async {
            let (head, body) = self.send(request).await?.into_parts();
            let bytes = read_all(body, &self.limits).await?;
            if head.status.is_success() {
                Ok(bytes)
            } else {
                Err(ApiError::from_body(head.status.as_u16(), &bytes))
            }
        });
        answer.await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, ApiError> {
        self.transport.send(request).await.map_err(|error| match error.headers_too_long {
            true => self.limits.exceeded(Limit::Headers),
            false => error.into(),
        })
    }

    fn request(
        &self,
        method: Method,
        path: String,
        content_type: &str,
        body: Bytes,
    ) -> Result<Request<Bytes>, ApiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, &*self.manager)
            .header(header::ACCEPT, "application/json");
        if !content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request.body(body).map_err(|error| ApiError::Request(error.to_string()))
    }
}

fn encode(value: &Value) -> Result<Bytes, ApiError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(ApiError::Encode)
}

#[cfg(test)]
mod hostile_tests;
