//! Paths, limits and errors of the HTTP API.

use capstan_guest::SiteError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(crate) const MACHINES: &str = "/v1/machines";
pub(crate) const BALANCERS: &str = "/v1/balancers";
/// Ids of changed machines, one per line; an empty line is a heartbeat.
pub(crate) const CHANGES: &str = "/v1/changes";

/// Maximum size of a body: boot data of 1 MiB as base64, and the rest of a machine.
pub(crate) const LARGEST_BODY: usize = 2 << 20;
/// Heartbeat interval of a stream without changes.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Ids and names contain slashes and are still one path segment.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

pub(crate) fn below(path: &str, part: &str) -> String {
    format!("{path}/{}", utf8_percent_encode(part, PART))
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    /// The site's error; absent if the request itself was invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<SiteError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Power {
    On,
    Off,
    Reboot,
    Crash,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PowerRequest {
    pub(crate) power: Power,
}
