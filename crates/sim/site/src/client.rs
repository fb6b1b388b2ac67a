//! A site in another process, over HTTP.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_guest::vm::{Vm, VmSpec};
use capstan_guest::{Balancer, SiteError};
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SiteCallError;
use crate::wire::{BALANCERS, CHANGES, LARGEST_BODY, MACHINES, Refusal, below};

/// Request timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The URL of a site is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address of a site: it is like http://127.0.0.1:7480, without a path")]
pub struct BadUrl(String);

/// A site in another process. Clones share the connection, which is opened on first use.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    /// Without a trailing slash.
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Remote {
    /// The site at a URL such as `http://127.0.0.1:7480`.
    pub fn new(url: &str) -> Result<Self, BadUrl> {
        let bad = || BadUrl(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        if uri.scheme() != Some(&Scheme::HTTP) || uri.host().is_none() || uri.query().is_some() {
            return Err(bad());
        }
        if !matches!(uri.path(), "" | "/") {
            return Err(bad());
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { inner: Arc::new(Inner { url, client }) })
    }

    /// Fails unless the site responds.
    pub async fn check(&self) -> Result<(), SiteCallError> {
        self.ask::<Vec<Vm>>(Method::GET, MACHINES, &()).await.map(drop)
    }

    /// Console output of a machine since its creation; `None` if the machine is unknown.
    pub async fn console(&self, id: &str) -> Result<Option<String>, SiteCallError> {
        self.ask(Method::GET, &format!("{}/console", below(MACHINES, id)), &()).await
    }

    pub(crate) async fn vm(&self, id: &str) -> Result<Option<Vm>, SiteCallError> {
        self.ask(Method::GET, &below(MACHINES, id), &()).await
    }

    pub(crate) async fn create(&self, spec: &VmSpec) -> Result<Vm, SiteCallError> {
        let made = self.ask(Method::POST, MACHINES, spec).await?;
        made.ok_or_else(|| self.unreachable("it has no machines"))
    }

    pub(crate) async fn destroy(&self, id: &str) -> Result<(), SiteCallError> {
        match self.ask::<()>(Method::DELETE, &below(MACHINES, id), &()).await? {
            Some(()) => Ok(()),
            None => Err(SiteError::NoSuchVm(id.to_owned()).into()),
        }
    }

    pub(crate) async fn balancer(&self, name: &str) -> Result<Option<Balancer>, SiteCallError> {
        self.ask(Method::GET, &below(BALANCERS, name), &()).await
    }

    pub(crate) async fn allocate(&self, name: &str) -> Result<(), SiteCallError> {
        self.ask::<Balancer>(Method::PUT, &below(BALANCERS, name), &()).await.map(drop)
    }

    pub(crate) async fn balance(
        &self,
        name: &str,
        members: &BTreeSet<Ipv4Addr>,
    ) -> Result<(), SiteCallError> {
        let path = format!("{}/members", below(BALANCERS, name));
        self.ask::<Balancer>(Method::PUT, &path, members).await.map(drop)
    }

    pub(crate) async fn release(&self, name: &str) -> Result<(), SiteCallError> {
        self.ask::<()>(Method::DELETE, &below(BALANCERS, name), &()).await.map(drop)
    }

    pub(crate) async fn follow(&self) -> Result<Incoming, SiteCallError> {
        let response = self.send(Method::GET, CHANGES, Bytes::new()).await?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            status => Err(self.unreachable(&status.to_string())),
        }
    }

    /// Sends a request; `None` if the object does not exist.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Option<T>, SiteCallError> {
        let body = serde_json::to_vec(body).map_err(|error| self.unreachable(&error.to_string()))?;
        let response = self.send(method, path, body.into()).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), 16 * LARGEST_BODY).collect();
        let body = tokio::time::timeout(TIMEOUT, body).await;
        let body = body.map_err(|_| self.unreachable("its answer does not end"))?;
        let body = body.map_err(|error| self.unreachable(&error.to_string()))?.to_bytes();
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if status.is_success() {
            return serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| self.unreachable(&format!("its answer cannot be read: {error}")));
        }
        match serde_json::from_slice::<Refusal>(&body) {
            Ok(Refusal { refused: Some(refused), .. }) => Err(refused.into()),
            Ok(refusal) => Err(self.unreachable(&format!("{status}: {}", refusal.message))),
            Err(_) => Err(self.unreachable(&status.to_string())),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, SiteCallError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.inner.url))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| self.unreachable(&error.to_string()))?;
        let response = tokio::time::timeout(TIMEOUT, self.inner.client.request(request)).await;
        let response = response.map_err(|_| self.unreachable(&format!("no answer in {TIMEOUT:?}")))?;
        response.map_err(|error| self.unreachable(&reason(&error)))
    }

    fn unreachable(&self, why: &str) -> SiteCallError {
        SiteCallError::Unreachable { url: self.inner.url.clone(), why: why.to_owned() }
    }
}

/// An error with its causes: the error itself only says that connecting failed.
fn reason(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", reason(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_site_is_plain_http_without_a_path() {
        for (url, good) in [
            ("http://127.0.0.1:7480", true),
            ("http://localhost:7480/", true),
            ("https://127.0.0.1:7480", false),
            ("127.0.0.1:7480", false),
            ("http://127.0.0.1:7480/v1", false),
            ("", false),
        ] {
            assert_eq!(Remote::new(url).is_ok(), good, "{url}");
        }
    }
}
