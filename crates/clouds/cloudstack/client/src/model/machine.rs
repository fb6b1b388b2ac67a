//! Virtual machines.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Tag, words};
use crate::id::{
    AffinityGroupId, DomainId, HostId, JobId, NetworkId, NicId, ProjectId, ServiceOfferingId, TemplateId,
    VirtualMachineId, ZoneId,
};
use crate::loose;
use capstan_cloud_http::Secret;

words! {
    /// What a machine is doing.
    MachineState {
        /// Being started. A new machine shows as stopped before this.
        Starting = "Starting",
        /// Powered on.
        Running = "Running",
        /// Being stopped.
        Stopping = "Stopping",
        /// Powered off.
        Stopped = "Stopped",
        /// Deleted, still holding its name and disks; ordinary users do not see it any more.
        Destroyed = "Destroyed",
        /// Its disks are being deleted.
        Expunging = "Expunging",
        /// Moving between hosts.
        Migrating = "Migrating",
        /// Never came up. It holds its name until it is expunged.
        Error = "Error",
        /// The server does not know its state.
        Unknown = "Unknown",
        /// Powered off by whoever is inside.
        Shutdown = "Shutdown",
        /// Being restored from a backup.
        Restoring = "Restoring",
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Id of the NIC.
    pub id: NicId,
    /// Which network it is in.
    pub networkid: Option<NetworkId>,
    /// The network's name.
    pub networkname: Option<String>,
    /// Its address; absent at first.
    pub ipaddress: Option<IpAddr>,
    /// IPv6 address of the NIC.
    pub ip6address: Option<IpAddr>,
    /// Netmask.
    pub netmask: Option<String>,
    /// Gateway.
    pub gateway: Option<IpAddr>,
    /// MAC address.
    pub macaddress: Option<String>,
    /// The one with the default route.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isdefault: bool,
    /// Position in the machine.
    #[serde(default, deserialize_with = "loose::number")]
    pub deviceid: Option<u32>,
    /// `Isolated`, `Shared` or `L2`.
    pub r#type: Option<super::GuestType>,
    /// Further addresses.
    #[serde(default)]
    pub secondaryip: Vec<SecondaryAddress>,
}

/// A further address of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondaryAddress {
    /// Id of the secondary address.
    pub id: String,
    /// The address.
    pub ipaddress: Option<IpAddr>,
}

/// The affinity group that a machine is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMembership {
    /// The group.
    pub id: AffinityGroupId,
    /// Name of the group membership.
    pub name: Option<String>,
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualMachine {
    /// Id of the virtual machine.
    pub id: VirtualMachineId,
    /// Its host name, unique in its network.
    pub name: Option<String>,
    /// Display name of the virtual machine.
    pub displayname: Option<String>,
    /// What it is doing.
    pub state: Option<MachineState>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// The zone's name.
    pub zonename: Option<String>,
    /// Account that owns the virtual machine.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// What it was made from.
    pub templateid: Option<TemplateId>,
    /// The template's name.
    pub templatename: Option<String>,
    /// Offering of the virtual machine.
    pub serviceofferingid: Option<ServiceOfferingId>,
    /// The offering's name.
    pub serviceofferingname: Option<String>,
    /// Processors.
    #[serde(default, deserialize_with = "loose::number")]
    pub cpunumber: Option<u32>,
    /// Megabytes.
    #[serde(default, deserialize_with = "loose::number")]
    pub memory: Option<u64>,
    /// Interfaces of the virtual machine.
    #[serde(default)]
    pub nic: Vec<Nic>,
    /// The address of its first interface.
    pub ipaddress: Option<IpAddr>,
    /// Groups of the virtual machine.
    #[serde(default)]
    pub affinitygroup: Vec<GroupMembership>,
    /// Settings of the virtual machine.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
    /// Names of its SSH keys, separated by commas.
    pub keypairs: Option<String>,
    /// The host, for administrators.
    pub hostid: Option<HostId>,
    /// What runs it.
    pub hypervisor: Option<String>,
    /// When it was ordered.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
    /// When its state changed last.
    #[serde(default, with = "loose::time")]
    pub lastupdated: Option<Timestamp>,
    /// A job about it.
    pub jobid: Option<JobId>,
    /// Where that job is.
    #[serde(default, deserialize_with = "loose::number")]
    pub jobstatus: Option<u8>,
    /// Guarded against deletion.
    #[serde(default, deserialize_with = "loose::truth")]
    pub deleteprotection: bool,
    /// Its first password, in the answer of the deployment only.
    pub password: Option<Secret>,
    /// What it booted with, where the server shows it.
    pub userdata: Option<Secret>,
    /// Tags of the virtual machine.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

/// What is left of a destroyed machine: after an expunge not even its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destroyed {
    /// Id of the destroyed machine.
    pub id: Option<VirtualMachineId>,
    /// What it is doing.
    pub state: Option<MachineState>,
}

/// What a machine booted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineUserData {
    /// The machine.
    pub virtualmachineid: VirtualMachineId,
    /// In base64.
    pub userdata: Option<Secret>,
}
