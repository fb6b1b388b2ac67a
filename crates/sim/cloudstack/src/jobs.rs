//! Asynchronous jobs.
//!
//! A step runs when it is due, with exclusive access to the cloud, and returns the result or the next step. There are no
//! threads and no locks: steps run in the order of their time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::identity::{Account, User};
use crate::model::table::Key;

/// Result of a step.
pub(crate) enum Next {
    /// The job ends with this result.
    Done(Result<Value>),
    /// Another step follows.
    After(Duration, Work),
}

/// A step of a job.
pub(crate) type Work = Box<dyn FnOnce(&mut Cloud, Key<Job>) -> Next + Send>;

/// A background task, such as the removal of machines.
pub(crate) type Chore = Box<dyn FnOnce(&mut Cloud) + Send>;

/// A scheduled event.
pub(crate) enum Event {
    Job(Key<Job>, Work),
    Chore(Chore),
}

/// An asynchronous job.
pub(crate) struct Job {
    pub(crate) command: &'static Command,
    pub(crate) account: Key<Account>,
    pub(crate) user: Key<User>,
    /// Owner of its resource.
    pub(crate) concerned: Key<Account>,
    /// Type and UUID of its resource.
    pub(crate) instance: (Option<&'static str>, Option<String>),
    pub(crate) outcome: Option<Result<Value>>,
    pub(crate) completed: Option<Timestamp>,
    /// It never ends: a fault.
    pub(crate) stuck: bool,
}

/// A job to start.
pub(crate) struct Submission {
    /// UUID of the created resource.
    pub(crate) id: Option<String>,
    pub(crate) instance: (Option<&'static str>, Option<String>),
    pub(crate) after: Duration,
    pub(crate) work: Work,
}

impl Submission {
    /// A job whose first step runs after a delay.
    pub(crate) fn new(
        after: Duration,
        work: impl FnOnce(&mut Cloud, Key<Job>) -> Next + Send + 'static,
    ) -> Self {
        Self { id: None, instance: (None, None), after, work: Box::new(work) }
    }

    /// A job with one step.
    pub(crate) fn once(
        after: Duration,
        work: impl FnOnce(&mut Cloud, Key<Job>) -> Result<Value> + Send + 'static,
    ) -> Self {
        Self::new(after, move |cloud, job| Next::Done(work(cloud, job)))
    }

    /// Sets the type of its resource.
    pub(crate) fn about(mut self, kind: &'static str) -> Self {
        self.instance.0 = Some(kind);
        self
    }

    /// Sets its resource.
    pub(crate) fn about_the(mut self, kind: &'static str, uuid: &str) -> Self {
        self.instance = (Some(kind), Some(uuid.to_owned()));
        self
    }

    /// Sets the resource that it creates; the reply has its UUID.
    pub(crate) fn making_the(mut self, kind: &'static str, uuid: &str) -> Self {
        self.id = Some(uuid.to_owned());
        self.about_the(kind, uuid)
    }
}

/// The result of jobs that remove something.
pub(crate) fn success() -> Value {
    json!({"success": true})
}

impl Cloud {
    /// Starts a job.
    pub(crate) fn submit(
        &mut self,
        command: &'static Command,
        (account, user): (Key<Account>, Key<User>),
        concerned: Key<Account>,
        submission: Submission,
    ) -> Key<Job> {
        let job = Job {
            command,
            account,
            user,
            concerned,
            instance: submission.instance,
            outcome: None,
            completed: None,
            stuck: false,
        };
        let uuid = self.fresh_uuid();
        let key = self.jobs.insert(uuid, self.now, job);
        self.log_begin(key);
        self.schedule(submission.after, Event::Job(key, submission.work));
        key
    }

    /// Schedules an event after a delay.
    pub(crate) fn schedule(&mut self, after: Duration, event: Event) {
        let at = self.now + jiff::SignedDuration::try_from(after).unwrap_or_default();
        self.schedule_at(at, event);
    }

    pub(crate) fn schedule_at(&mut self, at: Timestamp, event: Event) {
        self.event_count += 1;
        self.events.insert((at, self.event_count), event);
    }

    pub(crate) fn next_event(&self) -> Option<Timestamp> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Runs the events that are due, in order of their time.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.events.first_entry() {
            let at = entry.key().0;
            if at > now {
                break;
            }
            let event = entry.remove();
            self.now = self.now.max(at);
            match event {
                Event::Chore(chore) => chore(self),
                Event::Job(job, _) if self.jobs[job].stuck => {}
                Event::Job(job, work) => match work(self, job) {
                    Next::Done(outcome) => self.finish(job, outcome),
                    Next::After(after, work) => self.schedule(after, Event::Job(job, work)),
                },
            }
        }
        self.now = self.now.max(now);
    }

    fn finish(&mut self, job: Key<Job>, outcome: Result<Value>) {
        for vm in self.vms.iter_mut().filter(|vm| vm.busy == Some(job)) {
            vm.busy = None;
        }
        let now = self.now;
        if outcome.is_err() {
            self.complaints.job_failed(self.jobs[job].command.name);
        }
        let row = &mut self.jobs[job];
        row.outcome = Some(outcome);
        row.completed = Some(now);
        self.log_end(job);
    }

    /// The pending job of a resource.
    pub(crate) fn job_about(&self, uuid: &str) -> Option<&str> {
        let mut jobs = self
            .jobs
            .iter()
            .rev()
            .take_while(|job| job.created >= self.now - jiff::SignedDuration::from_hours(1));
        jobs.find(|job| job.outcome.is_none() && job.instance.1.as_deref() == Some(uuid))
            .map(|job| job.uuid.as_str())
    }
}

/// `jobresult` of a job that failed.
pub(crate) fn failure(error: &ApiError) -> Value {
    json!({"errorcode": error.code, "errortext": error.text})
}
