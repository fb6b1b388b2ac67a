//! Deployments under way, and when each is worth a question.
//!
//! Nobody is asked before a deployment can be over: the first question comes after as long as the last deployment of the
//! account took, and the longer one lasts, the longer the pauses. So a deployment costs a question or two, whether the
//! cloud takes seconds or minutes for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_client::{JobId, VirtualMachineId};
use tokio::time::Instant;

/// The first question comes no sooner.
const SOONEST: Duration = Duration::from_secs(5);
/// The first question comes no later, however long the last deployment took.
const LATEST: Duration = Duration::from_secs(60);
/// The shortest pause between questions.
const PAUSE: Duration = Duration::from_secs(3);
/// How long it is remembered what became of a deployment: whoever ordered the machine has heard of it by then.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where the deployment of a machine is.
#[derive(Debug, Clone, PartialEq)]
pub enum Deployment {
    /// Under way, and worth a look after so long.
    Running(Duration),
    /// The machine runs.
    Done(Arc<VirtualMachine>),
    /// It did not come up; what CloudStack says.
    Failed(String),
}

/// The deployments of an account.
#[derive(Debug)]
pub(crate) struct Deployments {
    /// How long they take, as far as it is known.
    expected: Duration,
    jobs: BTreeMap<JobId, Job>,
}

#[derive(Debug)]
struct Job {
    machine: VirtualMachineId,
    begun: Instant,
    due: Instant,
    /// Somebody asked and it was not over.
    late: bool,
    /// How it ended.
    end: Option<Deployment>,
}

impl Default for Deployments {
    fn default() -> Self {
        Self { expected: SOONEST, jobs: BTreeMap::new() }
    }
}

impl Deployments {
    /// One began just now.
    pub(crate) fn begin(&mut self, job: &JobId, machine: &VirtualMachineId) {
        self.jobs.retain(|_, job| job.begun.elapsed() <= REMEMBERED);
        let (begun, machine) = (Instant::now(), machine.clone());
        let due = begun + self.expected;
        self.jobs.insert(job.clone(), Job { machine, begun, due, late: false, end: None });
    }

    /// One that another process began: nobody knows when, so it is worth a question now.
    pub(crate) fn adopt(&mut self, job: &JobId, machine: &VirtualMachineId) {
        let (now, machine) = (Instant::now(), machine.clone());
        let adopted = || Job { machine, begun: now, due: now, late: true, end: None };
        self.jobs.entry(job.clone()).or_insert_with(adopted);
    }

    /// What is known of one without asking: its end, or that it is too soon to ask.
    pub(crate) fn known(&self, job: &JobId) -> Option<Deployment> {
        let job = self.jobs.get(job)?;
        let left = job.due.saturating_duration_since(Instant::now());
        job.end.clone().or_else(|| (!left.is_zero()).then_some(Deployment::Running(left)))
    }

    /// The machines of all that are not known to be over.
    pub(crate) fn under_way(&self) -> Vec<VirtualMachineId> {
        self.jobs.values().filter(|job| job.end.is_none()).map(|job| job.machine.clone()).collect()
    }

    /// The job that deploys a machine.
    pub(crate) fn job_of(&self, machine: &VirtualMachineId) -> Option<JobId> {
        let of = |(_, job): &(&JobId, &Job)| job.end.is_none() && job.machine == *machine;
        self.jobs.iter().find(of).map(|(id, _)| id.clone())
    }

    /// One is not over yet.
    pub(crate) fn goes_on(&mut self, job: &JobId) -> Deployment {
        let Some(job) = self.jobs.get_mut(job) else { return Deployment::Running(PAUSE) };
        let pause = (job.begun.elapsed() / 4).max(PAUSE);
        job.late = true;
        job.due = Instant::now() + pause;
        Deployment::Running(pause)
    }

    /// One is over.
    pub(crate) fn ended(&mut self, job: &JobId, end: Deployment) -> Deployment {
        if let Some(job) = self.jobs.get_mut(job) {
            if let Deployment::Done(_) = end {
                let took = if job.late { job.begun.elapsed() } else { self.expected * 9 / 10 };
                self.expected = took.clamp(SOONEST, LATEST);
            }
            job.end = Some(end.clone());
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> Deployment {
        let machine = serde_json::from_value(serde_json::json!({"id": "vm"})).expect("a machine");
        Deployment::Done(Arc::new(machine))
    }

    /// Has machines deployed one after the other; how many questions each costs, and how late its end is heard.
    async fn questions(seconds: &[u64]) -> Vec<(u32, u64)> {
        let mut deployments = Deployments::default();
        let mut questions = Vec::new();
        for (number, seconds) in seconds.iter().enumerate() {
            let (job, takes) = (JobId::from(number.to_string().as_str()), Duration::from_secs(*seconds));
            deployments.begin(&job, &"vm".into());
            let (begun, mut asked) = (Instant::now(), 0);
            loop {
                if let Some(Deployment::Running(left)) = deployments.known(&job) {
                    tokio::time::sleep(left).await;
                }
                asked += 1;
                if begun.elapsed() >= takes {
                    deployments.ended(&job, done());
                    break;
                }
                deployments.goes_on(&job);
            }
            assert_eq!(deployments.known(&job), Some(done()), "the end is remembered");
            questions.push((asked, (begun.elapsed() - takes).as_secs()));
        }
        questions
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_is_quick_is_asked_once_and_a_slow_one_seldom() {
        assert_eq!(questions(&[3, 2, 4]).await, [(1, 2), (1, 3), (1, 1)]);
        let slow = questions(&[40, 40, 40, 40, 40]).await;
        assert!(slow[0].0 <= 10, "{slow:?}");
        assert!(slow[1..].iter().all(|(asked, late)| *asked <= 2 && *late <= 11), "{slow:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_another_process_began_is_asked_for_at_once() {
        let mut deployments = Deployments::default();
        let job = JobId::from("j");
        assert_eq!(deployments.known(&job), None);
        deployments.adopt(&job, &"vm".into());
        assert_eq!(deployments.known(&job), None, "worth a question");
        assert_eq!(deployments.goes_on(&job), Deployment::Running(PAUSE));
        assert_eq!(deployments.known(&job), Some(Deployment::Running(PAUSE)));
        assert_eq!(
            (deployments.under_way(), deployments.job_of(&"vm".into())),
            (vec!["vm".into()], Some(job))
        );
    }
}
