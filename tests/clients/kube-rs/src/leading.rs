//! Leader election with a Lease, the way operators on kube-rs do it: whoever writes the Lease over the version it
//! read leads, as long as it goes on writing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Barrier;

use crate::{NAMESPACE, eventually};

const NAME: &str = "leader";
const DURATION_SECONDS: i32 = 2;
const RETRY: Duration = Duration::from_millis(200);

/// A candidate for leadership.
#[derive(Clone)]
struct Candidate {
    name: &'static str,
    leases: Api<Lease>,
}

impl Candidate {
    fn spec(&self, current: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
        let holds = current.and_then(|spec| spec.holder_identity.as_deref()) == Some(self.name);
        let transitions = current.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.name.to_owned()),
            lease_duration_seconds: Some(DURATION_SECONDS),
            acquire_time: match current.filter(|_| holds) {
                Some(spec) => spec.acquire_time.clone(),
                None => Some(MicroTime(now)),
            },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions + i32::from(current.is_some() && !holds)),
            ..LeaseSpec::default()
        }
    }

    /// Takes or renews the Lease; false when another candidate has it or was faster.
    async fn try_to_lead(&self) -> Result<bool> {
        let now = Timestamp::now();
        let params = PostParams::default();
        let written = match self.leases.get_opt(NAME).await? {
            None => {
                let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(self.spec(None, now)) };
                self.leases.create(&params, &lease).await
            }
            Some(mut lease) => {
                let current = lease.spec.clone().unwrap_or_default();
                let free = current.renew_time.as_ref().is_none_or(|renewed| {
                    now.duration_since(renewed.0) > SignedDuration::from_secs(DURATION_SECONDS.into())
                });
                if current.holder_identity.as_deref() != Some(self.name) && !free {
                    return Ok(false);
                }
                lease.spec = Some(self.spec(Some(&current), now));
                self.leases.replace(NAME, &params, &lease).await
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(other) => Err(other.into()),
        }
    }
}

pub async fn of_two_candidates_one_leads_and_the_other_follows_when_it_stops(client: &Client) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let start = Arc::new(Barrier::new(2));
    let attempt = |name| {
        let (candidate, start) = (Candidate { name, leases: leases.clone() }, start.clone());
        tokio::spawn(async move {
            start.wait().await;
            candidate.try_to_lead().await
        })
    };
    let (one, two) = (attempt("one"), attempt("two"));
    let (one, two) = (one.await??, two.await??);
    ensure!(one != two, "one: {one}, two: {two}");
    let [leader, other] = if one { ["one", "two"] } else { ["two", "one"] }
        .map(|name| Candidate { name, leases: leases.clone() });
    let held = leases.get(NAME).await?.spec.unwrap_or_default();
    ensure!(held.holder_identity.as_deref() == Some(leader.name), "{held:?}");
    ensure!(leader.try_to_lead().await?, "the leader could not renew");
    let renewed = leases.get(NAME).await?.spec.unwrap_or_default();
    ensure!(renewed.renew_time > held.renew_time && renewed.acquire_time == held.acquire_time, "{renewed:?}");
    ensure!(!other.try_to_lead().await?, "two leaders");
    // The leader is silent from here on.
    eventually("the other takes over", || async {
        tokio::time::sleep(RETRY).await;
        other.try_to_lead().await
    })
    .await?;
    ensure!(!leader.try_to_lead().await?, "two leaders");
    let taken = leases.get(NAME).await?.spec.unwrap_or_default();
    ensure!(taken.holder_identity.as_deref() == Some(other.name), "{taken:?}");
    ensure!(taken.lease_transitions == Some(1), "{taken:?}");
    Ok(())
}
