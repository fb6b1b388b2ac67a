//! Entries of the event log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::loose;

/// An entry of the event log of an account. An asynchronous command writes several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Id of the entry.
    pub id: String,
    /// What was ordered, such as `LB.DELETE`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `Scheduled`, `Started` or `Completed`.
    pub state: Option<String>,
    /// `INFO`, `WARN` or `ERROR`.
    pub level: Option<String>,
    /// When it was written.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
}
