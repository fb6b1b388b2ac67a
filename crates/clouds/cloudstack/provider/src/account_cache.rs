//! Cache of an account's machines, networks and deployments: one list of the cloud serves all controllers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, ListCapabilities, ListNetworks, ListVirtualMachines, Scope,
};
use capstan_cloudstack_client::model::{MachineState, Network, VirtualMachine};
use capstan_cloudstack_client::{
    Client, Error, JobId, JobState, LoadBalancerRuleId, VirtualMachineId, ZoneId,
};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::deployments::{Deployment, Deployments};
use crate::drift::{DriftDetector, NetworkInventory, Polled, Unlogged};
use crate::quota::QuotaGauge;

/// Maximum age of a cached machine that is being deployed or deleted.
pub(crate) const MOVING: Duration = Duration::from_millis(2500);
/// Maximum age of a cached machine that is running: changes made outside show within a minute, and an account is
/// listed no more than once a minute.
pub(crate) const SETTLED: Duration = Duration::from_secs(60);
/// Maximum age of cached networks for the controllers that ask right after another.
pub(crate) const JUST_NOW: Duration = Duration::from_secs(10);
/// Maximum age of the cached capabilities of an account.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// CloudStack's words for an account that may not expunge machines.
pub(crate) const EXPUNGE_REFUSED: &str = "does not have permission for expunging";

/// A machine as it was when it was listed.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineSnapshot {
    /// The machine, unless it is gone.
    pub machine: Option<Arc<VirtualMachine>>,
    pub age: Duration,
}

/// What the cloud lists for one account.
#[derive(Default)]
pub(crate) struct AccountCache(Mutex<Cached>, Mutex<DriftDetector>, Mutex<QuotaGauge>);

#[derive(Default)]
struct Cached {
    /// When everything was last listed.
    listed: Option<Instant>,
    machines: BTreeMap<VirtualMachineId, (Instant, Option<Arc<VirtualMachine>>)>,
    deployments: Deployments,
    /// By zone and name, or zone and id.
    networks: BTreeMap<(ZoneId, String), (Instant, Vec<Network>)>,
    may_expunge: Option<(Instant, bool)>,
}

impl Cached {
    fn snapshot(&self, id: &VirtualMachineId, most: Duration) -> Option<MachineSnapshot> {
        if let Some((at, machine)) = self.machines.get(id).filter(|(at, _)| at.elapsed() < most) {
            return Some(MachineSnapshot { machine: machine.clone(), age: at.elapsed() });
        }
        let listed = self.listed.filter(|at| at.elapsed() < most)?;
        Some(MachineSnapshot { machine: None, age: listed.elapsed() })
    }
}

/// The account may destroy machines and not expunge them. The machine runs on then.
pub(crate) fn may_not_expunge(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.text.contains(EXPUNGE_REFUSED))
}

impl AccountCache {
    /// A machine, as it was at most so long ago. One that is under way is asked for alone, one that is settled with all
    /// others of the account.
    pub(crate) async fn machine(
        &self,
        client: &Client,
        scope: &Scope,
        id: &VirtualMachineId,
        most: Duration,
    ) -> Result<MachineSnapshot, Error> {
        let mut cached = self.0.lock().await;
        if let Some(snapshot) = cached.snapshot(id, most) {
            return Ok(snapshot);
        }
        let alone = most < SETTLED;
        let question = ListVirtualMachines {
            id: alone.then(|| id.clone()),
            details: vec!["nics".to_owned()],
            scope: scope.clone(),
            ..ListVirtualMachines::default()
        };
        // What happens while the answer is on its way may be missing in it.
        let now = Instant::now();
        let found = client.list(&question).await?;
        if alone {
            cached.machines.insert(id.clone(), (now, None));
        } else {
            cached.machines.clear();
            cached.listed = Some(now);
        }
        for machine in found {
            cached.machines.insert(machine.id.clone(), (now, Some(Arc::new(machine))));
        }
        let machine = cached.machines.get(id).and_then(|(_, machine)| machine.clone());
        Ok(MachineSnapshot { machine, age: now.elapsed() })
    }

    /// Where the deployment of a machine is. Several that are under way are looked at together: a machine that runs, or
    /// starts, says enough; of any other the job is asked, which alone knows why one failed.
    pub(crate) async fn deployment(
        &self,
        client: &Client,
        scope: &Scope,
        job: &JobId,
        machine: &VirtualMachineId,
    ) -> Result<Deployment, Error> {
        let cached = &mut *self.0.lock().await;
        cached.deployments.adopt(job, machine);
        if let Some(known) = cached.deployments.known(job) {
            return Ok(known);
        }
        let ids = cached.deployments.under_way();
        if ids.len() > 1 {
            let details = vec!["nics".to_owned()];
            let scope = scope.clone();
            let question = ListVirtualMachines { ids, details, scope, ..ListVirtualMachines::default() };
            let now = Instant::now();
            // Without an answer the job is asked, and says what is wrong.
            for machine in client.list(&question).await.unwrap_or_default() {
                let Some(job) = cached.deployments.job_of(&machine.id) else { continue };
                if machine.state == Some(MachineState::Running) {
                    let machine = Arc::new(machine);
                    cached.machines.insert(machine.id.clone(), (now, Some(machine.clone())));
                    cached.deployments.ended(&job, Deployment::Done(machine));
                } else if machine.state == Some(MachineState::Starting) {
                    cached.deployments.goes_on(&job);
                }
            }
            if let Some(known) = cached.deployments.known(job) {
                return Ok(known);
            }
        }
        Ok(match client.poll::<DeployVirtualMachine>(job).await? {
            JobState::Running => cached.deployments.goes_on(job),
            JobState::Succeeded(machine) => {
                let machine = Arc::new(machine);
                cached.machines.insert(machine.id.clone(), (Instant::now(), Some(machine.clone())));
                cached.deployments.ended(job, Deployment::Done(machine))
            }
            JobState::Failed(refusal) => {
                cached.deployments.ended(job, Deployment::Failed(refusal.to_string()))
            }
        })
    }

    /// A deployment began just now. No list that was made before can show its machine.
    pub(crate) async fn deploying(&self, job: &JobId, machine: &VirtualMachineId) {
        let mut cached = self.0.lock().await;
        cached.deployments.begin(job, machine);
        cached.listed = None;
    }

    /// Networks of a name in a zone, in any case, or the one of an id, as they were at most so long ago.
    pub(crate) async fn networks(
        &self,
        client: &Client,
        scope: &Scope,
        zone: &ZoneId,
        (id, name): (&str, &str),
        most: Duration,
    ) -> Result<Vec<Network>, Error> {
        let networks = &mut self.0.lock().await.networks;
        networks.retain(|_, (at, _)| at.elapsed() < JUST_NOW);
        let key = (zone.clone(), if id.is_empty() { name.to_owned() } else { id.to_owned() });
        if let Some((_, found)) = networks.get(&key).filter(|(at, _)| at.elapsed() < most) {
            return Ok(found.clone());
        }
        let question = ListNetworks {
            id: Some(id).filter(|id| !id.is_empty()).map(Into::into),
            name: Some(name.to_owned()).filter(|name| id.is_empty() && !name.is_empty()),
            zoneid: Some(zone.clone()),
            scope: scope.clone(),
            ..ListNetworks::default()
        };
        let now = Instant::now();
        let found = client.list(&question).await?;
        for network in &found {
            let by_id = (zone.clone(), network.id.to_string());
            networks.insert(by_id, (now, vec![network.clone()]));
        }
        networks.insert(key, (now, found.clone()));
        Ok(found)
    }

    /// Drops all cached networks.
    pub(crate) async fn networks_changed(&self) {
        self.0.lock().await.networks.clear();
        self.1.lock().await.changed();
    }

    /// Whether somebody changed something in the networks of the account, about a minute old at most; what the event log
    /// may not show, about ten.
    pub(crate) async fn alterations(
        &self,
        client: &Client,
        scope: &Scope,
        unlogged: Unlogged,
    ) -> Result<Polled, Error> {
        let mut detector = self.1.lock().await;
        detector.depends_on(unlogged);
        detector.poll(client, scope).await
    }

    /// Whether a machine is still a member of a load balancer rule, if somebody took members out of rules of the account;
    /// and the time until that is known better.
    pub(crate) async fn is_member(
        &self,
        client: &Client,
        scope: &Scope,
        (rule, machine): (&LoadBalancerRuleId, &VirtualMachineId),
    ) -> Result<(Option<bool>, Duration), Error> {
        let mut detector = self.1.lock().await;
        let next = detector.poll(client, scope).await?.next;
        Ok((detector.is_member(client, rule, machine).await?, next))
    }

    /// Takes over a membership that one of our own calls began or ended.
    pub(crate) async fn membership(&self, rule: &str, machine: &str, begins: bool) {
        self.1.lock().await.membership(&rule.into(), &machine.into(), begins);
    }

    /// The networks of the account and what is on them, listed after a moment; and when.
    pub(crate) async fn inventory(
        &self,
        client: &Client,
        scope: &Scope,
        after: Instant,
    ) -> Result<(Instant, Arc<NetworkInventory>), Error> {
        self.1.lock().await.inventory(client, scope, after).await
    }

    /// What is left of the limits of the account.
    pub(crate) async fn quota(&self) -> MutexGuard<'_, QuotaGauge> {
        self.2.lock().await
    }

    /// Drops what is cached of a machine.
    pub(crate) async fn changed(&self, id: &VirtualMachineId) {
        let mut cached = self.0.lock().await;
        cached.machines.remove(id);
        cached.listed = None;
    }

    /// CloudStack refused to expunge a machine: the setting allows it, and the role does not.
    pub(crate) async fn expunge_refused(&self) {
        self.0.lock().await.may_expunge = Some((Instant::now(), false));
    }

    /// Whether users of the account may expunge machines, or only destroy them. The capability shows the setting and not
    /// the permission for `expungeVirtualMachine`, which is needed too: a refusal shows that.
    pub(crate) async fn may_expunge(&self, client: &Client) -> Result<bool, Error> {
        let mut cached = self.0.lock().await;
        if let Some((_, may)) = cached.may_expunge.filter(|(at, _)| at.elapsed() <= REMEMBERED) {
            return Ok(may);
        }
        let may = client.call(&ListCapabilities {}).await?.allowuserexpungerecovervm;
        cached.may_expunge = Some((Instant::now(), may));
        Ok(may)
    }
}
