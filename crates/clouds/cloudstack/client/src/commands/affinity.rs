//! Affinity groups.

use serde::Serialize;

use super::{Owner, Scope};
use crate::command::{jobs, lists};
use crate::id::{AffinityGroupId, NoId, VirtualMachineId};
use crate::model::{AffinityGroup, Done, VirtualMachine};

/// Affinity groups.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListAffinityGroups {
    /// The group with this id.
    pub id: Option<AffinityGroupId>,
    /// The group with this name.
    pub name: Option<String>,
    /// Of this type.
    pub r#type: Option<String>,
    /// That this machine is in.
    pub virtualmachineid: Option<VirtualMachineId>,
    /// Owner of the affinity groups.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a group.
#[derive(Debug, Clone, Serialize)]
pub struct CreateAffinityGroup {
    /// Its name, unique in the account.
    pub name: String,
    /// `host affinity`, `host anti-affinity`, ….
    pub r#type: String,
    /// Description of the affinity group.
    pub description: Option<String>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes a group, even one with members.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteAffinityGroup {
    /// The group.
    pub id: AffinityGroupId,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Puts a stopped machine into other groups.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateVmAffinityGroup {
    /// The machine.
    pub id: VirtualMachineId,
    /// All its groups.
    pub affinitygroupids: Vec<AffinityGroupId>,
}

lists! { ListAffinityGroups: "listAffinityGroups" => "affinitygroup" AffinityGroup; }
jobs! {
    CreateAffinityGroup: "createAffinityGroup" [AffinityGroupId] => "affinitygroup" AffinityGroup;
    DeleteAffinityGroup: "deleteAffinityGroup" [NoId] => Done;
    UpdateVmAffinityGroup: "updateVMAffinityGroup" [NoId] => "virtualmachine" VirtualMachine;
}
