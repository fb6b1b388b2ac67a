//! The simulator: a cloud behind HTTP, in this process or over TCP.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_env::Env;
use capstan_hypervisor::Hypervisor;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::cloud::{Cloud, CloudFaults};
use crate::faults::{Fault, Faults};
use crate::leaks::Leak;
use crate::service::{Endpoints, Service};
use crate::settings::{Layout, Settings};
use crate::table::Fields as _;
use crate::wire::{Call, Fail};
use crate::{admin, front, guests};

/// Maximum size of a body: images are small here.
const LARGEST_BODY: usize = 64 << 20;

/// The connection broke before a reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was lost before a reply was received")]
pub struct ConnectionLost;

/// There is no such server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no server {0} in this cloud")]
pub struct UnknownServer(pub String);

/// A dump that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the dump of a simulated OpenStack cannot be read")]
pub struct RestoreError(#[from] serde_json::Error);

/// A simulated cloud. Cheap to clone; all clones are one cloud.
#[derive(Clone)]
pub struct Simulator {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    cloud: Mutex<Cloud>,
    faults: Mutex<Faults>,
    baseline: Mutex<BTreeSet<Leak>>,
    /// Requests so far, by service, method and path with ids as `{id}`.
    calls: Mutex<BTreeMap<String, u64>>,
    /// Notified when work may be due earlier than before.
    changed: Notify,
}

impl Simulator {
    /// A cloud with this initial content. With a hypervisor, servers boot on it.
    pub fn new(
        env: Env,
        layout: &Layout,
        settings: Settings,
        hypervisor: Option<Arc<dyn Hypervisor>>,
    ) -> Self {
        let cloud = Cloud::bootstrap(env.clone(), layout, settings, hypervisor);
        let inner = Inner {
            env,
            baseline: Mutex::new(cloud.owned_resources()),
            cloud: Mutex::new(cloud),
            faults: Mutex::default(),
            calls: Mutex::default(),
            changed: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sets the URLs that the catalog and links name.
    pub fn set_endpoints(&self, endpoints: Endpoints) {
        self.inner.cloud.lock().endpoints = endpoints;
    }

    /// Answers one request to a service of a region.
    pub async fn call(
        &self,
        region: &str,
        service: Service,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, ConnectionLost> {
        if let Some(response) = admin::answer(self, &request) {
            return Ok(response);
        }
        let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
        *self.inner.calls.lock().entry(counted(service, &method, &path)).or_default() += 1;
        let faults = self.inner.faults.lock().take(service, &method, &path);
        if !faults.delay.is_zero() {
            tokio::time::sleep(faults.delay).await;
        }
        if faults.never_arrives {
            return Err(ConnectionLost);
        }
        let response = {
            let mut cloud = self.inner.cloud.lock();
            cloud.advance(self.inner.env.now());
            cloud.region = region.to_owned();
            let base = cloud.endpoints.url(region, service).to_owned();
            match faults.refused {
                Some((status, message)) => {
                    let call = Call::new(request, base, String::new());
                    let message = if message.is_empty() { "injected".to_owned() } else { message };
                    front::refuse(service, &call, Fail::new(status, "", message)).render(false)
                }
                None => front::answer(&mut cloud, service, request, base),
            }
        };
        self.inner.changed.notify_waiters();
        if faults.reply_is_lost { Err(ConnectionLost) } else { Ok(response) }
    }

    /// Answers a request to any service, chosen by the prefix of its path as [`Endpoints::shared`] has it.
    pub async fn call_shared(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, ConnectionLost> {
        let regions = self.inner.cloud.lock().regions.clone();
        let text = request.uri().path_and_query().map_or_else(|| "/".to_owned(), |it| it.as_str().to_owned());
        let first = regions.first().cloned().unwrap_or_default();
        let (region, rest) = regions
            .iter()
            .skip(1)
            .find_map(|region| Some((region.clone(), text.strip_prefix(&format!("/{region}"))?.to_owned())))
            .unwrap_or((first, text.clone()));
        let found = Service::ALL.into_iter().find_map(|service| {
            let rest = rest.strip_prefix(service.prefix())?;
            (rest.is_empty() || rest.starts_with(['/', '?'])).then(|| (service, rest.to_owned()))
        });
        let Some((service, rest)) = found else {
            if let Some(response) = admin::answer(self, &request) {
                return Ok(response);
            }
            let mut response = Response::new(Bytes::from_static(b"no service has this path\n"));
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            return Ok(response);
        };
        let rest = if rest.starts_with('/') { rest } else { format!("/{rest}") };
        *request.uri_mut() = rest.parse().map_err(|_| ConnectionLost)?;
        self.call(&region, service, request).await
    }

    /// Does work when it is due, also without calls. Runs until it is dropped.
    pub async fn drive(&self) {
        loop {
            let changed = self.inner.changed.notified();
            let next = {
                let mut cloud = self.inner.cloud.lock();
                cloud.advance(self.inner.env.now());
                cloud.next_due()
            };
            match next {
                None => changed.await,
                Some(at) => {
                    let wait = at.duration_since(self.inner.env.now());
                    // Never a busy loop, whatever the clock says.
                    let wait = Duration::try_from(wait).unwrap_or_default().max(Duration::from_millis(1));
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = changed => {}
                    }
                }
            }
        }
    }

    /// Serves one service of a region, or all of them by prefix, over TCP.
    pub async fn serve(&self, listener: TcpListener, only: Option<(String, Service)>) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (simulator, only) = (self.clone(), only.clone());
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let (simulator, only) = (simulator.clone(), only.clone());
                    async move { simulator.receive(only, request).await }
                });
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        }
    }

    /// An error here ends the connection, which is how a reply gets lost.
    async fn receive(
        &self,
        only: Option<(String, Service)>,
        request: Request<hyper::body::Incoming>,
    ) -> Result<Response<Full<Bytes>>, ConnectionLost> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, LARGEST_BODY).collect().await.map_err(|_| ConnectionLost)?;
        let request = Request::from_parts(head, body.to_bytes());
        let response = match only {
            Some((region, service)) => self.call(&region, service, request).await?,
            None => self.call_shared(request).await?,
        };
        Ok(response.map(Full::new))
    }

    /// Names of the regions; the first is the default.
    pub fn regions(&self) -> Vec<String> {
        self.inner.cloud.lock().regions.clone()
    }

    /// Changes settings; scheduled work keeps its time.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.inner.cloud.lock().settings);
    }

    pub fn inject(&self, fault: Fault) -> Result<(), UnknownServer> {
        let mut cloud = self.inner.cloud.lock();
        cloud.advance(self.inner.env.now());
        match fault {
            Fault::ExpiredTokens => {
                cloud.table_mut("tokens").retain(|_| false);
                cloud.table_mut("validations").retain(|_| false);
            }
            Fault::NoValidHost => cloud.faults.no_host = true,
            Fault::FailedBuilds { times } => cloud.faults.failing_builds = times,
            Fault::FailedLoadBalancers { times } => cloud.faults.failing_balancers = times,
            Fault::FailedImports { times } => cloud.faults.failing_imports = times,
            Fault::Stuck { work } => cloud.faults.stuck.push(work),
            Fault::PowerOff { server } => {
                let regions = cloud.regions.clone();
                let region = regions.into_iter().find(|region| {
                    cloud.region.clone_from(region);
                    cloud.get("servers", &server).is_some()
                });
                cloud.region = region.ok_or_else(|| UnknownServer(server.clone()))?;
                crate::nova::power_off(&mut cloud, &server);
            }
            fault => self.inner.faults.lock().add(fault),
        }
        drop(cloud);
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Faults of calls that are still active.
    pub fn faults(&self) -> Vec<Fault> {
        self.inner.faults.lock().all()
    }

    /// Ends all faults. Work that got stuck stays stuck.
    pub fn heal(&self) {
        self.inner.faults.lock().clear();
        self.inner.cloud.lock().faults = CloudFaults::default();
    }

    /// Requests so far, by service, method and path with ids as `{id}`.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.inner.calls.lock().clone()
    }

    /// Makes the current resources the baseline of leaks.
    pub fn forgive(&self) {
        *self.inner.baseline.lock() = self.inner.cloud.lock().owned_resources();
    }

    /// Resources of one project, or of all, that are not in the baseline.
    pub fn leaks(&self, project: Option<&str>) -> Vec<Leak> {
        let mut cloud = self.inner.cloud.lock();
        cloud.advance(self.inner.env.now());
        let baseline = self.inner.baseline.lock();
        let all = cloud.owned_resources();
        all.difference(&baseline)
            .filter(|leak| project.is_none_or(|name| leak.project == name))
            .cloned()
            .collect()
    }

    /// All resources and pending work. Passwords and secrets are in it as hashes only.
    pub fn dump(&self) -> serde_json::Value {
        let mut cloud = self.inner.cloud.lock();
        cloud.advance(self.inner.env.now());
        serde_json::to_value(&cloud.state).unwrap_or_default()
    }

    /// Replaces all resources and pending work by those of a dump.
    pub fn restore(&self, dump: serde_json::Value) -> Result<(), RestoreError> {
        let mut cloud = self.inner.cloud.lock();
        cloud.state = serde_json::from_value(dump)?;
        guests::rebalance(&mut cloud);
        drop(cloud);
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Id of a project.
    pub fn project(&self, name: &str) -> Option<String> {
        self.inner.cloud.lock().find("projects", "name", name).map(|it| it.text("id").to_owned())
    }
}

/// A call as it is counted: calls that differ only in ids are one.
fn counted(service: Service, method: &str, path: &str) -> String {
    let is_id = |part: &str| {
        let digits = part.chars().filter(|c| c.is_ascii_hexdigit()).count();
        part.len() >= 32 && digits >= 32
    };
    let parts: Vec<&str> = path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect();
    format!("{} {method} {}", service.kind(), parts.join("/"))
}
