//! Templates.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Tag;
use crate::id::{DomainId, TemplateId, ZoneId};
use crate::loose;

/// What a machine's root disk is made from. Lists have one entry per template *and zone*, with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Id of the template.
    pub id: TemplateId,
    /// Name of the template, not unique.
    pub name: String,
    /// Description of the template.
    pub displaytext: Option<String>,
    /// The zone of this entry.
    pub zoneid: Option<ZoneId>,
    /// The zone's name.
    pub zonename: Option<String>,
    /// Whether machines can be made from it there.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isready: bool,
    /// Everybody may use it.
    #[serde(default, deserialize_with = "loose::truth")]
    pub ispublic: bool,
    /// Shown first.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isfeatured: bool,
    /// In all zones.
    #[serde(default, rename = "crossZones", deserialize_with = "loose::truth")]
    pub cross_zones: bool,
    /// What it runs on.
    pub hypervisor: Option<String>,
    /// `QCOW2`, `VHD`, `OVA`, ….
    pub format: Option<String>,
    /// `x86_64` or `aarch64`.
    pub arch: Option<String>,
    /// What is in it.
    pub ostypename: Option<String>,
    /// Bytes of the disk.
    #[serde(default, deserialize_with = "loose::number")]
    pub size: Option<u64>,
    /// `USER`, `SYSTEM`, `BUILTIN`, ….
    pub templatetype: Option<String>,
    /// How far the download is; administrators and owners only.
    pub status: Option<String>,
    /// Account that owns the template.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// When it was registered.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
    /// Settings of machines made from it.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
    /// Tags on it.
    #[serde(default)]
    pub tags: Vec<Tag>,
}
