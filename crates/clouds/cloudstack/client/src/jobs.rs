//! Jobs: begun by one request, ended whenever the cloud is ready.
//!
//! A job's end is only ever read from `queryAsyncJobResult`, so a failure cannot be missed. Where many jobs of one
//! account are waited for, `listAsyncJobs`, which shows those still running, spares the rest of them the question.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::Client;
use crate::command::{Command, Effect, Job};
use crate::commands::{ListAsyncJobs, QueryAsyncJobResult};
use crate::envelope;
use crate::error::{Code, Error, ErrorKind, Refusal};
use crate::id::JobId;

/// How old a list of running jobs may be to answer for a job.
const FRESH: Duration = Duration::from_secs(1);

/// A job that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Submitted<I> {
    /// The job: whoever has this id can wait for it, now and after a restart.
    #[serde(rename = "jobid")]
    pub job: JobId,
    /// What the job makes. It exists from now on, whatever becomes of the job.
    pub id: Option<I>,
}

/// Where a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState<T> {
    /// Not ended.
    Running,
    /// Ended well.
    Succeeded(T),
    /// Ended badly.
    Failed(Refusal),
}

/// Which jobs of the account were running a moment ago, and how many are waited for.
#[derive(Default)]
pub(crate) struct Board {
    waiting: AtomicUsize,
    unusable: AtomicBool,
    running: Mutex<Option<(Instant, HashSet<JobId>)>>,
}

/// Counts a waiter as long as it exists.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    /// Begins a job. The id is worth writing down before anything else happens.
    pub async fn start<C: Job>(&self, command: &C) -> Result<Submitted<C::Id>, Error> {
        let parameters = self.parameters(command)?;
        let inside = self.send(C::NAME, &parameters).await?;
        serde_json::from_str(inside.get()).map_err(|error| self.error(C::NAME, envelope::unreadable(&error)))
    }

    /// Asks once how a job is.
    pub async fn poll<C: Job>(&self, job: &JobId) -> Result<JobState<C::Outcome>, Error> {
        let question = QueryAsyncJobResult { jobid: job.clone() };
        let name = QueryAsyncJobResult::NAME;
        let status = self.call(&question).await.map_err(|error| error.of_job(job))?;
        let state = match status.jobstatus {
            Some(0) => JobState::Running,
            Some(1) => {
                let result = status.jobresult.as_deref().unwrap_or(RawValue::NULL);
                match envelope::result(result, C::KEY) {
                    Ok(outcome) => JobState::Succeeded(outcome),
                    Err(ErrorKind::Refused(refusal)) => JobState::Failed(refusal),
                    Err(kind) => return Err(self.error(C::NAME, kind).of_job(job)),
                }
            }
            // 2 is failed, 3 is cancelled.
            Some(2 | 3) => {
                JobState::Failed(envelope::job_refusal(status.jobresult.as_deref(), status.jobresultcode))
            }
            other => {
                let why = format!("jobstatus is {other:?}");
                return Err(self.error(name, ErrorKind::Unreadable { status: 200, why }).of_job(job));
            }
        };
        Ok(state)
    }

    /// Waits for the end of a job, as long as the policy's patience lasts. A question that goes unanswered is no end.
    pub async fn wait<C: Job>(&self, job: &JobId) -> Result<C::Outcome, Error> {
        let patience = &self.policy.jobs;
        let begun = Instant::now();
        let mut pause = patience.first;
        let _waiting = Waiting::new(&self.shared.board.waiting);
        loop {
            tokio::time::sleep(pause).await;
            let state = match self.is_listed(job).await {
                true => Ok(JobState::Running),
                false => self.poll::<C>(job).await,
            };
            let over = begun.elapsed() >= patience.total;
            match state {
                Ok(JobState::Succeeded(outcome)) => return Ok(outcome),
                Ok(JobState::Failed(refusal)) => {
                    return Err(self.job_error::<C>(job, ErrorKind::JobFailed(refusal)));
                }
                Ok(JobState::Running) if over => {
                    return Err(self.job_error::<C>(job, ErrorKind::JobPending(begun.elapsed())));
                }
                Ok(JobState::Running) => {}
                Err(error) if over || !error.is_retryable() => return Err(error),
                Err(_) => {}
            }
            pause = pause.mul_f32(1.5).min(patience.longest);
        }
    }

    /// Begins a job and waits for its end. Callers that must know the job after a crash use [`Self::start`].
    pub async fn run<C: Job>(&self, command: &C) -> Result<C::Outcome, Error> {
        let submitted = self.start(command).await?;
        self.wait::<C>(&submitted.job).await
    }

    fn job_error<C: Job>(&self, job: &JobId, kind: ErrorKind) -> Error {
        Error::new(C::NAME, Effect::of(C::NAME), kind).of_job(job)
    }

    /// Whether a fresh list shows the job as running. False says nothing.
    async fn is_listed(&self, job: &JobId) -> bool {
        let board = &self.shared.board;
        if board.unusable.load(Ordering::Relaxed)
            || board.waiting.load(Ordering::Relaxed) < self.policy.jobs.crowd
        {
            return false;
        }
        let mut running = board.running.lock().await;
        if running.as_ref().is_none_or(|(at, _)| at.elapsed() >= FRESH) {
            match self.list(&ListAsyncJobs::default()).await {
                Ok(jobs) => {
                    let jobs = jobs.into_iter().map(|job| job.jobid).collect();
                    *running = Some((Instant::now(), jobs));
                }
                Err(error) => {
                    // A role may lack the command; an unknown one is refused like bad keys.
                    if matches!(error.code(), Some(Code::Unsupported | Code::Unauthorized)) {
                        board.unusable.store(true, Ordering::Relaxed);
                    }
                    return false;
                }
            }
        }
        running.as_ref().is_some_and(|(_, jobs)| jobs.contains(job))
    }
}
