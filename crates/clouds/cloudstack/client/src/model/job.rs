//! Jobs.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::JobId;
use crate::loose;

/// A job that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsyncJob {
    /// The job.
    pub jobid: JobId,
    /// 0 runs, 1 succeeded, 2 failed, 3 was cancelled.
    #[serde(default, deserialize_with = "loose::number")]
    pub jobstatus: Option<u8>,
    /// The Java class of its command.
    pub cmd: Option<String>,
    /// What kind of thing it is about.
    pub jobinstancetype: Option<String>,
    /// Id of the resource that the job is about.
    pub jobinstanceid: Option<String>,
    /// When it began.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
}

/// How a job is, and its result once it has one.
#[derive(Clone, Serialize, Deserialize)]
pub struct JobResult {
    /// 0 runs, 1 succeeded, 2 failed, 3 was cancelled.
    #[serde(default, deserialize_with = "loose::number")]
    pub jobstatus: Option<u8>,
    /// The error code of a failed job.
    #[serde(default, deserialize_with = "loose::number")]
    pub jobresultcode: Option<u16>,
    /// The result, or the error of a failed job.
    pub jobresult: Option<Box<RawValue>>,
    /// What kind of thing it is about.
    pub jobinstancetype: Option<String>,
    /// Id of the resource that the job is about.
    pub jobinstanceid: Option<String>,
    /// When it began.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
    /// When it ended.
    #[serde(default, with = "loose::time")]
    pub completed: Option<Timestamp>,
}

impl fmt::Debug for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the result: a new machine's password is in it.
        f.debug_struct("JobResult")
            .field("jobstatus", &self.jobstatus)
            .field("jobresultcode", &self.jobresultcode)
            .field("jobinstanceid", &self.jobinstanceid)
            .finish_non_exhaustive()
    }
}
