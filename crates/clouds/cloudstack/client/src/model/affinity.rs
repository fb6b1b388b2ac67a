//! Affinity groups.

use serde::{Deserialize, Serialize};

use crate::id::{AffinityGroupId, DomainId, ProjectId, VirtualMachineId};

/// Machines that are kept together or apart. Names are unique per account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AffinityGroup {
    /// Its id.
    pub id: AffinityGroupId,
    /// Its name.
    pub name: String,
    /// `host affinity`, `host anti-affinity`, ….
    pub r#type: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// Its members. The capital letter is CloudStack's.
    #[serde(default, rename = "virtualmachineIds")]
    pub virtual_machine_ids: Vec<VirtualMachineId>,
    /// Whose it is.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
}
