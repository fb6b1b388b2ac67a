//! Jobs. [`Client::poll`](crate::Client::poll) and [`Client::wait`](crate::Client::wait) use these.

use serde::Serialize;

use super::Scope;
use crate::command::{calls, lists};
use crate::id::JobId;
use crate::model::{AsyncJob, JobResult};

/// How a job is.
#[derive(Debug, Clone, Serialize)]
pub struct QueryAsyncJobResult {
    /// The job.
    pub jobid: JobId,
}

/// Jobs that are under way.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListAsyncJobs {
    /// Owner of the async jobs.
    #[serde(flatten)]
    pub scope: Scope,
}

lists! { ListAsyncJobs: "listAsyncJobs" => "asyncjobs" AsyncJob; }
calls! { QueryAsyncJobResult: "queryAsyncJobResult" => JobResult; }
