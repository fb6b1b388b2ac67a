//! Affinity groups.

use serde::{Deserialize, Serialize};

use crate::id::{AffinityGroupId, DomainId, ProjectId, VirtualMachineId};

/// Machines that are kept together or apart. Names are unique per account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AffinityGroup {
    /// Id of the affinity group.
    pub id: AffinityGroupId,
    /// Name of the affinity group.
    pub name: String,
    /// `host affinity`, `host anti-affinity`, ….
    pub r#type: Option<String>,
    /// Description of the affinity group.
    pub description: Option<String>,
    /// Its members. The capital letter is CloudStack's.
    #[serde(default, rename = "virtualmachineIds")]
    pub virtual_machine_ids: Vec<VirtualMachineId>,
    /// Account that owns the affinity group.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
}
