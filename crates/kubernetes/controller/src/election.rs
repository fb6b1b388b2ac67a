//! One leader among several processes, by a Lease: client-go's rules and times, so that both can stand for the same
//! lease.
//!
//! A lease alone is no fence: a paused process may resume and still act as leader. Writes therefore have resource versions
//! as preconditions and calls have intents. The lease only saves two processes from doing the same work.

use std::time::Duration;

use capstan_env::Env;
use capstan_object::{Key, ObjectMeta};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::KindName;
use crate::client::{ApiError, Client};

/// How leadership is sought.
#[derive(Debug, Clone)]
pub struct Election {
    pub lease: Key,
    /// Name of this process, unique among the candidates.
    pub identity: String,
    /// A leader that has not renewed for this long is gone.
    pub duration: Duration,
    /// A leader that could not renew for this long gives up.
    pub renew_within: Duration,
    /// How often it is tried.
    pub retry: Duration,
}

impl Election {
    /// An election with client-go's times: 15 s, 10 s, 2 s.
    pub fn new(lease: Key, identity: impl Into<String>) -> Self {
        Self {
            lease,
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_within: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Lease {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_transitions: Option<i64>,
}

capstan_object::object!(Lease, "coordination.k8s.io" / "v1", "Lease", "leases", Namespaced);

/// Stands for one lease.
pub struct Candidate {
    client: Client,
    env: Env,
    election: Election,
    /// The lease as last seen and when: clocks of other processes are not trusted.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Candidate {
    pub fn new(client: Client, env: Env, election: Election) -> Self {
        Self { client, env, election, seen: None }
    }

    /// Tries once; returns whether this process leads.
    pub async fn leads_at_once(&mut self) -> bool {
        self.try_once().await.unwrap_or_else(|error| {
            tracing::warn!(lease = %self.election.lease, %error, "standing for the lease failed");
            false
        })
    }

    /// Returns once this process leads.
    pub async fn lead(&mut self) {
        while !self.leads_at_once().await {
            tokio::time::sleep(self.election.retry).await;
        }
    }

    /// Renews for as long as it can; returns when this process no longer leads.
    pub async fn keep(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.election.retry).await;
            let deadline = renewed + self.election.renew_within;
            match tokio::time::timeout_at(deadline, self.try_once()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.election.lease, %error, "renewing the lease failed");
                }
                Err(_) => return,
            }
            if Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Lets the lease go, so that another need not wait for it to run out.
    pub async fn resign(&mut self) -> Result<(), ApiError> {
        let Some(lease) = self.client.get::<Lease>(&self.election.lease).await? else { return Ok(()) };
        if lease.spec.holder_identity.as_deref() != Some(&self.election.identity) {
            return Ok(());
        }
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            ..lease.spec.clone()
        };
        self.write(&Lease { spec, ..lease }).await
    }

    /// Takes or renews the lease if it may; returns whether this process leads.
    async fn try_once(&mut self) -> Result<bool, ApiError> {
        let now = self.env.now();
        let Some(lease) = self.client.get::<Lease>(&self.election.lease).await? else {
            let lease = Lease {
                metadata: ObjectMeta::named(
                    self.election.lease.namespace.clone(),
                    self.election.lease.name.clone(),
                ),
                spec: self.spec(now, now_text(now), 0),
            };
            return match self.client.create_object(&lease).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_already_exists() => Ok(false),
                Err(error) => Err(error),
            };
        };
        let observed = Instant::now();
        if self.seen.as_ref().is_none_or(|(spec, _)| *spec != lease.spec) {
            self.seen = Some((lease.spec.clone(), observed));
        }
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        let ours = holder == self.election.identity;
        if !ours && !holder.is_empty() && !self.run_out(&lease.spec, observed) {
            return Ok(false);
        }
        let transitions = lease.spec.lease_transitions.unwrap_or(0) + i64::from(!ours);
        let acquired = if ours { lease.spec.acquire_time.clone() } else { None };
        let spec = self.spec(now, acquired.unwrap_or_else(|| now_text(now)), transitions);
        match self.write(&Lease { spec, ..lease }).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The holder has not renewed for the lease's time, by our own clock since we saw it last change.
    fn run_out(&self, spec: &LeaseSpec, observed: Instant) -> bool {
        let lasts = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let lasts = lasts.map_or(self.election.duration, Duration::from_secs);
        let unchanged = self.seen.as_ref().map_or(Duration::ZERO, |(_, since)| observed - *since);
        unchanged >= lasts
    }

    fn spec(&self, now: Timestamp, acquired: String, transitions: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: i64::try_from(self.election.duration.as_secs()).ok(),
            acquire_time: Some(acquired),
            renew_time: Some(now_text(now)),
            lease_transitions: Some(transitions),
        }
    }

    async fn write(&self, lease: &Lease) -> Result<(), ApiError> {
        let mut body = capstan_object::to_value(lease).map_err(ApiError::Encode)?;
        body["metadata"]["resourceVersion"] = json!(lease.metadata.resource_version);
        self.client.replace(&KindName::of::<Lease>(), &self.election.lease, None, &body).await.map(drop)
    }
}

/// `metav1.MicroTime`.
fn now_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_apiserver::{Config, Server};
    use capstan_pki::Pki;

    use super::*;

    async fn server() -> (Server, Client) {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let plane = Server::start(Config::in_memory(), pki).await.expect("a server");
        let client = Client::in_process(plane.clone(), "test");
        (plane, client)
    }

    fn candidate(client: &Client, name: &str) -> Candidate {
        let election = Election::new(Key::new("default", "lease"), name);
        Candidate::new(client.clone(), Env::system(), election)
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_dies_is_followed_after_its_lease_and_not_before() {
        let (_plane, client) = server().await;
        let (mut first, mut second) = (candidate(&client, "first"), candidate(&client, "second"));
        assert!(first.leads_at_once().await);
        assert!(!second.leads_at_once().await);
        // It renews for a minute and then stops.
        let renewed = tokio::time::timeout(Duration::from_secs(60), first.keep()).await;
        assert!(renewed.is_err(), "it kept the lease");
        let died = Instant::now();
        second.lead().await;
        // Both processes read the lease every two seconds.
        let waited = died.elapsed();
        assert!(waited >= Duration::from_secs(13) && waited <= Duration::from_secs(19), "{waited:?}");
        assert!(!first.leads_at_once().await, "one leads");
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_resigns_is_followed_at_once_and_one_that_does_not_lead_cannot() {
        let (_plane, client) = server().await;
        let (mut first, mut second) = (candidate(&client, "first"), candidate(&client, "second"));
        first.lead().await;
        second.resign().await.expect("nothing to let go");
        assert!(!second.leads_at_once().await);
        first.resign().await.expect("let go");
        assert!(second.leads_at_once().await);
        // Whoever lost the lease notices with its next renewal.
        first.keep().await;
    }
}
