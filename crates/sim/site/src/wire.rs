//! What both sides of the wire agree on: paths, limits, and how a refusal is written.

use capstan_guest::SiteError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Machines: list, create; one of them below.
pub(crate) const MACHINES: &str = "/v1/machines";
/// Load balancers, each below.
pub(crate) const BALANCERS: &str = "/v1/balancers";
/// Ids of machines as they change, a line each; an empty line is a sign of life.
pub(crate) const CHANGES: &str = "/v1/changes";

/// Most bytes of a body: boot data of 1 MiB as base64, and the rest of a machine.
pub(crate) const LARGEST_BODY: usize = 2 << 20;
/// How often a stream without changes shows that it lives.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Ids and names have slashes in them and are still one part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// A path below another.
pub(crate) fn below(path: &str, part: &str) -> String {
    format!("{path}/{}", utf8_percent_encode(part, PART))
}

/// A refusal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// For people.
    pub(crate) message: String,
    /// What the site does not do; absent if the request itself was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<SiteError>,
}

/// What to do with the power of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Power {
    On,
    Off,
    Reboot,
    Crash,
}

/// Body of a request about power.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PowerRequest {
    pub(crate) power: Power,
}
