//! The simulator: a cloud behind HTTP, in this process or over TCP.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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

use crate::catalog;
use crate::cloud::Cloud;
use crate::complaints::Complaints;
use crate::faults::{Fault, Faults};
use crate::front::{self, Query};
use crate::jobs::Event;
use crate::leaks::Leak;
use crate::params::Params;
use crate::settings::{Layout, Settings};

/// Maximum size of a body.
const LARGEST_BODY: usize = 2 << 20;
/// Delay until the cloud detects that a machine powered off by itself.
const NOTICE: Duration = Duration::from_secs(27);

/// Counts calls of commands that do not exist.
const UNKNOWN: &str = "unknown";

/// The connection broke before a reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was lost before a reply was received")]
pub struct ConnectionLost;

/// There is no such account, or no such machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {0} in this cloud")]
pub struct UnknownAccount(pub String);

/// API credentials of a user.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `apiKey`.
    pub api_key: String,
    pub secret_key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("api_key", &self.api_key).finish_non_exhaustive()
    }
}

/// A simulated management server. Cheap to clone; all clones are one cloud.
#[derive(Clone)]
pub struct Simulator {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    cloud: Mutex<Cloud>,
    faults: Mutex<Faults>,
    baseline: Mutex<BTreeSet<Leak>>,
    /// Requests so far, by command.
    calls: Mutex<BTreeMap<&'static str, u64>>,
    /// Notified when an event may be due earlier than before.
    changed: Notify,
}

impl Simulator {
    /// A cloud with this initial content. With a hypervisor, machines boot on it and public addresses are those that its
    /// load balancers listen on.
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

    /// Answers one request.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ConnectionLost> {
        if let Some(response) = front::administer(self, &request) {
            return Ok(response);
        }
        let query = match Query::read(&request) {
            Ok(query) => query,
            Err(response) => return Ok(*response),
        };
        // Names are those of the catalog: whoever sends others has them counted as one.
        let counted = catalog::command(query.command()).map_or(UNKNOWN, |command| command.name);
        *self.inner.calls.lock().entry(counted).or_default() += 1;
        let faults = self.inner.faults.lock().take(query.command());
        if !faults.delay.is_zero() {
            tokio::time::sleep(faults.delay).await;
        }
        if faults.never_arrives {
            return Err(ConnectionLost);
        }
        if let Some((code, text)) = &faults.refused {
            return Ok(front::refuse(&query, *code, text));
        }
        let response = {
            let mut cloud = self.inner.cloud.lock();
            cloud.advance(self.inner.env.now());
            let before = cloud.jobs.iter().next_back().map(|job| job.key);
            let response = front::answer(&mut cloud, query);
            let made = cloud.jobs.iter().next_back().map(|job| job.key).filter(|job| Some(*job) != before);
            if let Some(job) = made.filter(|_| faults.job_is_stuck) {
                cloud.jobs[job].stuck = true;
            }
            response
        };
        self.inner.changed.notify_waiters();
        if faults.reply_is_lost { Err(ConnectionLost) } else { Ok(response) }
    }

    /// Answers a command as the administrator, without a signature and without faults.
    pub(crate) fn call_as_root(&self, params: Params) -> Response<Bytes> {
        let response = {
            let mut cloud = self.inner.cloud.lock();
            cloud.advance(self.inner.env.now());
            front::answer_root(&mut cloud, params)
        };
        self.inner.changed.notify_waiters();
        response
    }

    /// Runs jobs and background tasks when they are due, also without calls. Runs until it is dropped.
    pub async fn drive(&self) {
        loop {
            let changed = self.inner.changed.notified();
            let next = {
                let mut cloud = self.inner.cloud.lock();
                cloud.advance(self.inner.env.now());
                cloud.next_event()
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

    /// Serves the API over TCP and drives the cloud until `stop` resolves.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let drive = self.drive();
        tokio::pin!(drive);
        loop {
            let stream = tokio::select! {
                () = &mut stop => return,
                () = &mut drive => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let simulator = self.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let simulator = simulator.clone();
                    async move { simulator.receive(request).await }
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
        request: Request<hyper::body::Incoming>,
    ) -> Result<Response<Full<Bytes>>, ConnectionLost> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, LARGEST_BODY).collect().await.map_err(|_| ConnectionLost)?;
        let response = self.call(Request::from_parts(head, body.to_bytes())).await?;
        Ok(response.map(Full::new))
    }

    /// Keys of the first user of an account that has some.
    pub fn credentials(&self, account: &str) -> Result<Credentials, UnknownAccount> {
        let cloud = self.inner.cloud.lock();
        let found = cloud.users.iter().find(|user| cloud.accounts[user.account].name == account);
        let keys = found.and_then(|user| user.keys.as_ref());
        let keys = keys.ok_or_else(|| UnknownAccount(format!("account {account}")))?;
        Ok(Credentials { api_key: keys.api.clone(), secret_key: keys.secret.clone() })
    }

    /// Changes global settings; scheduled events keep their time.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.inner.cloud.lock().settings);
    }

    /// Sets for one account whether its users may expunge and recover machines, and whether they see destroyed ones.
    pub fn set_account(
        &self,
        account: &str,
        expunge: bool,
        see_destroyed: bool,
    ) -> Result<(), UnknownAccount> {
        let mut cloud = self.inner.cloud.lock();
        let found = cloud.accounts.iter_mut().find(|row| row.name == account);
        let row = found.ok_or_else(|| UnknownAccount(format!("account {account}")))?;
        (row.may_expunge, row.sees_destroyed) = (Some(expunge), Some(see_destroyed));
        Ok(())
    }

    /// Gives an account a custom role with these commands and no others.
    pub fn set_role<'a>(
        &self,
        account: &str,
        commands: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), UnknownAccount> {
        let mut cloud = self.inner.cloud.lock();
        let found = cloud.accounts.iter_mut().find(|row| row.name == account);
        let row = found.ok_or_else(|| UnknownAccount(format!("account {account}")))?;
        row.permissions = Some(commands.into_iter().map(str::to_owned).collect());
        Ok(())
    }

    pub fn inject(&self, fault: Fault) -> Result<(), UnknownAccount> {
        let mut cloud = self.inner.cloud.lock();
        cloud.advance(self.inner.env.now());
        match &fault {
            Fault::NoCapacity => cloud.full = true,
            Fault::HostsFail { command, times } => {
                cloud.host_failures.insert(command.name(), times.unwrap_or(u32::MAX));
            }
            Fault::ExpiredKeys { account } => {
                let key = cloud.accounts.iter().find(|row| row.name == *account).map(|row| row.key);
                let key = key.ok_or_else(|| UnknownAccount(format!("account {account}")))?;
                for keys in cloud
                    .users
                    .iter_mut()
                    .filter(|user| user.account == key)
                    .filter_map(|user| user.keys.as_mut())
                {
                    keys.expired = true;
                }
            }
            Fault::PowerOff { vm } => {
                let key = cloud.vms.find(vm).ok_or_else(|| UnknownAccount(format!("machine {vm}")))?;
                cloud.stop_guest(key);
                cloud.schedule(NOTICE, Event::Chore(Box::new(move |cloud| cloud.power_off(key))));
            }
            _ => self.inner.faults.lock().add(fault),
        }
        drop(cloud);
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Faults of commands that are still active.
    pub fn faults(&self) -> Vec<Fault> {
        self.inner.faults.lock().all()
    }

    /// Ends all faults. Jobs that got stuck stay stuck.
    pub fn heal(&self) {
        self.inner.faults.lock().clear();
        let mut cloud = self.inner.cloud.lock();
        cloud.full = false;
        cloud.host_failures.clear();
        for keys in cloud.users.iter_mut().filter_map(|user| user.keys.as_mut()) {
            keys.expired = false;
        }
    }

    /// Requests so far, by command, including failed ones.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.inner.calls.lock().clone()
    }

    /// What an administrator would complain about so far.
    pub fn complaints(&self) -> Complaints {
        let cloud = self.inner.cloud.lock();
        cloud.complaints.complaints(cloud.log.written())
    }

    /// Makes the current resources the baseline of leaks.
    pub fn forgive(&self) {
        *self.inner.baseline.lock() = self.inner.cloud.lock().owned_resources();
    }

    /// Resources of one account, or of all, that are not in the baseline.
    pub fn leaks(&self, account: Option<&str>) -> Vec<Leak> {
        let mut cloud = self.inner.cloud.lock();
        cloud.advance(self.inner.env.now());
        let baseline = self.inner.baseline.lock();
        let all = cloud.owned_resources();
        all.difference(&baseline)
            .filter(|leak| account.is_none_or(|account| leak.account == account))
            .cloned()
            .collect()
    }
}

impl tower_service::Service<Request<Bytes>> for Simulator {
    type Response = Response<Bytes>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let simulator = self.clone();
        Box::pin(async move { Simulator::call(&simulator, request).await })
    }
}
