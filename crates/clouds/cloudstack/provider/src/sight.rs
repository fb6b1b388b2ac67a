//! What was seen of an account's machines and jobs, and when: one list serves everybody who asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, ListCapabilities, ListVirtualMachines, Scope,
};
use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_client::{Client, Error, JobId, JobState, VirtualMachineId};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How old a look at a machine that is under way may be.
pub(crate) const MOVING: Duration = Duration::from_millis(2500);
/// How old a look at a machine that should just run may be: what happens behind our back shows within a minute, and an
/// account is asked no more than once a minute.
pub(crate) const SETTLED: Duration = Duration::from_secs(60);
/// How long it is believed what users of the account may do, and what became of their jobs.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where the deployment of a machine is.
#[derive(Debug, Clone, PartialEq)]
pub enum Deployment {
    /// Under way.
    Running,
    /// The machine runs.
    Done(Arc<VirtualMachine>),
    /// It did not come up; what CloudStack says.
    Failed(String),
}

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
    jobs: BTreeMap<JobId, (Instant, Deployment)>,
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

    /// Where a deployment is, as of a moment ago.
    pub(crate) async fn deployment(&self, client: &Client, job: &JobId) -> Result<Deployment, Error> {
        let mut memory = self.0.lock().await;
        if let Some((at, known)) = memory.jobs.get(job)
            && (at.elapsed() <= MOVING || *known != Deployment::Running)
        {
            return Ok(known.clone());
        }
        let state = match client.poll::<DeployVirtualMachine>(job).await? {
            JobState::Running => Deployment::Running,
            JobState::Succeeded(machine) => {
                let machine = Arc::new(machine);
                memory.machines.insert(machine.id.clone(), (Instant::now(), Some(machine.clone())));
                Deployment::Done(machine)
            }
            JobState::Failed(refusal) => Deployment::Failed(refusal.to_string()),
        };
        memory.jobs.insert(job.clone(), (Instant::now(), state.clone()));
        Ok(state)
    }

    /// A deployment began just now.
    pub(crate) async fn deploying(&self, job: &JobId) {
        let jobs = &mut self.0.lock().await.jobs;
        // Whoever ordered a machine that long ago has heard the end of it.
        jobs.retain(|_, (at, _)| at.elapsed() <= REMEMBERED);
        jobs.insert(job.clone(), (Instant::now(), Deployment::Running));
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
