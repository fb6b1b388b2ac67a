//! What was seen of an account's machines and networks, and when: one list serves everybody who asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, ListCapabilities, ListNetworks, ListVirtualMachines, Scope,
};
use capstan_cloudstack_client::model::{MachineState, Network, VirtualMachine};
use capstan_cloudstack_client::{Client, Error, JobId, JobState, VirtualMachineId, ZoneId};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::deployments::{Deployment, Deployments};

/// How old a look at a machine that is under way may be.
pub(crate) const MOVING: Duration = Duration::from_millis(2500);
/// How old a look at a machine that should just run may be: what happens behind our back shows within a minute, and an
/// account is asked no more than once a minute.
pub(crate) const SETTLED: Duration = Duration::from_secs(60);
/// How old a look at networks may be for whoever comes right after the one who looked.
pub(crate) const JUST_NOW: Duration = Duration::from_secs(10);
/// How long it is believed what users of the account may do.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A look at a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    /// The machine, unless it is gone.
    pub machine: Option<Arc<VirtualMachine>>,
    /// How old the look is.
    pub age: Duration,
}

/// What was seen with one account's eyes.
#[derive(Default)]
pub(crate) struct Sight(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    /// When everything was last listed.
    listed: Option<Instant>,
    machines: BTreeMap<VirtualMachineId, (Instant, Option<Arc<VirtualMachine>>)>,
    deployments: Deployments,
    /// By zone and name, or zone and id.
    networks: BTreeMap<(ZoneId, String), (Instant, Vec<Network>)>,
    may_expunge: Option<(Instant, bool)>,
}

impl Memory {
    fn glance(&self, id: &VirtualMachineId, most: Duration) -> Option<Glance> {
        if let Some((at, machine)) = self.machines.get(id).filter(|(at, _)| at.elapsed() < most) {
            return Some(Glance { machine: machine.clone(), age: at.elapsed() });
        }
        let listed = self.listed.filter(|at| at.elapsed() < most)?;
        Some(Glance { machine: None, age: listed.elapsed() })
    }
}

impl Sight {
    /// A machine, as it was at most so long ago. One that is under way is asked for alone, one that is settled with all
    /// others of the account.
    pub(crate) async fn machine(
        &self,
        client: &Client,
        scope: &Scope,
        id: &VirtualMachineId,
        most: Duration,
    ) -> Result<Glance, Error> {
        let mut memory = self.0.lock().await;
        if let Some(glance) = memory.glance(id, most) {
            return Ok(glance);
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
            memory.machines.insert(id.clone(), (now, None));
        } else {
            memory.machines.clear();
            memory.listed = Some(now);
        }
        for machine in found {
            memory.machines.insert(machine.id.clone(), (now, Some(Arc::new(machine))));
        }
        let machine = memory.machines.get(id).and_then(|(_, machine)| machine.clone());
        Ok(Glance { machine, age: now.elapsed() })
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
        let memory = &mut *self.0.lock().await;
        memory.deployments.adopt(job, machine);
        if let Some(known) = memory.deployments.known(job) {
            return Ok(known);
        }
        let ids = memory.deployments.under_way();
        if ids.len() > 1 {
            let details = vec!["nics".to_owned()];
            let scope = scope.clone();
            let question = ListVirtualMachines { ids, details, scope, ..ListVirtualMachines::default() };
            let now = Instant::now();
            // Without an answer the job is asked, and says what is wrong.
            for machine in client.list(&question).await.unwrap_or_default() {
                let Some(job) = memory.deployments.job_of(&machine.id) else { continue };
                if machine.state == Some(MachineState::Running) {
                    let machine = Arc::new(machine);
                    memory.machines.insert(machine.id.clone(), (now, Some(machine.clone())));
                    memory.deployments.ended(&job, Deployment::Done(machine));
                } else if machine.state == Some(MachineState::Starting) {
                    memory.deployments.goes_on(&job);
                }
            }
            if let Some(known) = memory.deployments.known(job) {
                return Ok(known);
            }
        }
        Ok(match client.poll::<DeployVirtualMachine>(job).await? {
            JobState::Running => memory.deployments.goes_on(job),
            JobState::Succeeded(machine) => {
                let machine = Arc::new(machine);
                memory.machines.insert(machine.id.clone(), (Instant::now(), Some(machine.clone())));
                memory.deployments.ended(job, Deployment::Done(machine))
            }
            JobState::Failed(refusal) => {
                memory.deployments.ended(job, Deployment::Failed(refusal.to_string()))
            }
        })
    }

    /// A deployment began just now.
    pub(crate) async fn deploying(&self, job: &JobId, machine: &VirtualMachineId) {
        self.0.lock().await.deployments.begin(job, machine);
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

    /// Nothing that was seen of networks holds any more.
    pub(crate) async fn networks_changed(&self) {
        self.0.lock().await.networks.clear();
    }

    /// Nothing that was seen of a machine holds any more.
    pub(crate) async fn changed(&self, id: &VirtualMachineId) {
        let mut memory = self.0.lock().await;
        memory.machines.remove(id);
        memory.listed = None;
    }

    /// Whether users of the account may expunge machines, or only destroy them.
    pub(crate) async fn may_expunge(&self, client: &Client) -> Result<bool, Error> {
        let mut memory = self.0.lock().await;
        if let Some((_, may)) = memory.may_expunge.filter(|(at, _)| at.elapsed() <= REMEMBERED) {
            return Ok(may);
        }
        let may = client.call(&ListCapabilities {}).await?.allowuserexpungerecovervm;
        memory.may_expunge = Some((Instant::now(), may));
        Ok(may)
    }
}
