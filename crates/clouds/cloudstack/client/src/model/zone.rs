//! Zones.

use serde::{Deserialize, Serialize};

use super::words;
use crate::id::ZoneId;
use crate::loose;

words! {
    /// How the networks of a zone are made.
    ZoneNetworkType {
        /// One flat network.
        Basic = "Basic",
        /// Networks of one's own.
        Advanced = "Advanced",
    }
}

/// A zone, in most clouds one data centre.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Id of the zone.
    pub id: ZoneId,
    /// Name of the zone.
    pub name: String,
    /// How its networks are made.
    pub networktype: Option<ZoneNetworkType>,
    /// Whether machines are guarded by security groups.
    #[serde(default, deserialize_with = "loose::truth")]
    pub securitygroupsenabled: bool,
    /// `Enabled` or `Disabled`.
    pub allocationstate: Option<String>,
    /// Whether machines may use disks of their host.
    #[serde(default, deserialize_with = "loose::truth")]
    pub localstorageenabled: bool,
    /// Whether networks without address translation are possible.
    #[serde(default, deserialize_with = "loose::truth")]
    pub routedmodeenabled: bool,
}
