//! Virtual machines.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::{Owner, Scope, TagPair};
use crate::UserData;
use crate::command::{calls, jobs, lists};
use crate::id::{
    AffinityGroupId, DiskOfferingId, HostId, NetworkId, NoId, ServiceOfferingId, TemplateId,
    VirtualMachineId, VolumeId, ZoneId,
};
use crate::model::{Destroyed, Done, MachineState, MachineUserData, VirtualMachine};

/// An interface in a network, with an optional address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkAddress {
    /// The network.
    pub networkid: NetworkId,
    /// The address; any if none.
    pub ip: Option<IpAddr>,
}

/// Makes a machine. Names are checked before the job begins, but not against others made at the same moment.
#[derive(Debug, Clone, Serialize)]
pub struct DeployVirtualMachine {
    /// Processors and memory.
    pub serviceofferingid: ServiceOfferingId,
    /// What it is made from.
    pub templateid: TemplateId,
    /// Where.
    pub zoneid: ZoneId,
    /// Host name: a letter, then letters, digits and hyphens, at most 63.
    pub name: Option<String>,
    /// Display name of the virtual machine.
    pub displayname: Option<String>,
    /// Networks; the first is the default. Excludes `iptonetworklist`.
    pub networkids: Vec<NetworkId>,
    /// Networks with optional addresses.
    pub iptonetworklist: Vec<NetworkAddress>,
    /// A data disk.
    pub diskofferingid: Option<DiskOfferingId>,
    /// Gigabytes of the data disk, if its offering leaves that open.
    pub size: Option<u64>,
    /// Gigabytes of the root disk, if not the template's.
    pub rootdisksize: Option<u64>,
    /// Name of an SSH key.
    pub keypair: Option<String>,
    /// Groups.
    pub affinitygroupids: Vec<AffinityGroupId>,
    /// What to boot with.
    pub userdata: Option<UserData>,
    /// Settings, such as `cpuNumber`.
    pub details: BTreeMap<String, String>,
    /// False: leave it stopped.
    pub startvm: Option<bool>,
    /// A host; administrators only.
    pub hostid: Option<HostId>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

impl DeployVirtualMachine {
    /// A machine with everything else left to the server.
    pub fn new(zone: ZoneId, offering: ServiceOfferingId, template: TemplateId) -> Self {
        Self {
            serviceofferingid: offering,
            templateid: template,
            zoneid: zone,
            name: None,
            displayname: None,
            networkids: Vec::new(),
            iptonetworklist: Vec::new(),
            diskofferingid: None,
            size: None,
            rootdisksize: None,
            keypair: None,
            affinitygroupids: Vec::new(),
            userdata: None,
            details: BTreeMap::new(),
            startvm: None,
            hostid: None,
            owner: Owner::default(),
        }
    }
}

/// Machines. Destroyed ones show to administrators only.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListVirtualMachines {
    /// The machine with this id.
    pub id: Option<VirtualMachineId>,
    /// The machines with these ids.
    pub ids: Vec<VirtualMachineId>,
    /// Machines with this host name, in any case.
    pub name: Option<String>,
    /// Machines whose name contains this.
    pub keyword: Option<String>,
    /// Doing this. Words that no state has find nothing.
    pub state: Option<MachineState>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// In this network.
    pub networkid: Option<NetworkId>,
    /// Made from this.
    pub templateid: Option<TemplateId>,
    /// In this group.
    pub affinitygroupid: Option<AffinityGroupId>,
    /// With *any* of these tags.
    pub tags: Vec<TagPair>,
    /// What to return: `min` spares the server the rest, `nics` adds interfaces.
    pub details: Vec<String>,
    /// Owner of the virtual machines.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Deletes a machine. Data disks survive unless named.
#[derive(Debug, Clone, Serialize)]
pub struct DestroyVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
    /// Its name and disks too, at once. The job of a user who may not fails, and the machine runs on.
    pub expunge: Option<bool>,
    /// Data disks to delete with it.
    pub volumeids: Vec<VolumeId>,
}

/// Gives back name and disks of a destroyed machine.
#[derive(Debug, Clone, Serialize)]
pub struct ExpungeVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
}

/// Brings a destroyed machine back, stopped.
#[derive(Debug, Clone, Serialize)]
pub struct RecoverVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
}

/// Powers a machine on.
#[derive(Debug, Clone, Serialize)]
pub struct StartVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
}

/// Powers a machine off. One that is off already counts as success.
#[derive(Debug, Clone, Serialize)]
pub struct StopVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
    /// Without asking its operating system.
    pub forced: Option<bool>,
}

/// Restarts a machine.
#[derive(Debug, Clone, Serialize)]
pub struct RebootVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
    /// Without asking its operating system.
    pub forced: Option<bool>,
}

/// Changes what a machine is called and set to.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateVirtualMachine {
    /// The machine.
    pub id: VirtualMachineId,
    /// Host name. Overwrites the display name unless that is given too.
    pub name: Option<String>,
    /// Display name of the virtual machine.
    pub displayname: Option<String>,
    /// What to boot with next time.
    pub userdata: Option<UserData>,
    /// Settings, all of them.
    pub details: BTreeMap<String, String>,
}

/// What a machine boots with.
#[derive(Debug, Clone, Serialize)]
pub struct GetVirtualMachineUserData {
    /// The machine.
    pub virtualmachineid: VirtualMachineId,
}

lists! { ListVirtualMachines: "listVirtualMachines" => "virtualmachine" VirtualMachine; }
calls! {
    RecoverVirtualMachine: "recoverVirtualMachine" => "virtualmachine" VirtualMachine;
    UpdateVirtualMachine: "updateVirtualMachine" => "virtualmachine" VirtualMachine;
    GetVirtualMachineUserData: "getVirtualMachineUserData" => "virtualmachineuserdata" MachineUserData;
}
jobs! {
    DeployVirtualMachine: "deployVirtualMachine" [VirtualMachineId] => "virtualmachine" VirtualMachine;
    DestroyVirtualMachine: "destroyVirtualMachine" [NoId] => "virtualmachine" Destroyed;
    ExpungeVirtualMachine: "expungeVirtualMachine" [NoId] => Done;
    StartVirtualMachine: "startVirtualMachine" [NoId] => "virtualmachine" VirtualMachine;
    StopVirtualMachine: "stopVirtualMachine" [NoId] => "virtualmachine" VirtualMachine;
    RebootVirtualMachine: "rebootVirtualMachine" [NoId] => "virtualmachine" VirtualMachine;
}
