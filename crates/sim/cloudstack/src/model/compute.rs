//! Virtual machines and what belongs to them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::identity::{Account, User};
use super::network::Network;
use super::place::{DiskOffering, Host, ServiceOffering, Size, Template, Zone};
use super::table::Key;
use crate::jobs::Job;

/// A virtual machine.
pub(crate) struct Vm {
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) account: Key<Account>,
    pub(crate) user: Key<User>,
    pub(crate) zone: Key<Zone>,
    pub(crate) template: Key<Template>,
    pub(crate) offering: Key<ServiceOffering>,
    pub(crate) size: Size,
    pub(crate) state: VmState,
    pub(crate) updated: Option<Timestamp>,
    pub(crate) host: Option<Key<Host>>,
    pub(crate) nics: Vec<Nic>,
    pub(crate) user_data: Option<String>,
    pub(crate) details: BTreeMap<String, String>,
    pub(crate) affinity: Vec<Key<AffinityGroup>>,
    pub(crate) group: Option<(String, String)>,
    pub(crate) key_pairs: Vec<String>,
    pub(crate) data_disk: Option<Key<DiskOffering>>,
    /// Its root disk is on a storage pool: it was started at least once.
    pub(crate) on_storage: bool,
    /// When it was destroyed or failed: the background task counts from here.
    pub(crate) swept_from: Option<Timestamp>,
    /// The job that is changing its state.
    pub(crate) busy: Option<Key<Job>>,
    /// Its guest exists.
    pub(crate) booted: bool,
    /// An address that it holds without the cloud's knowing, by kube-vip.
    pub(crate) floating: Option<std::net::SocketAddrV4>,
    /// A host released its capacity at least once. The server keeps a detail about it, which only root sees.
    pub(crate) capacity_freed: bool,
    /// It cannot be destroyed.
    pub(crate) protected: bool,
    pub(crate) running_since: Option<Timestamp>,
    pub(crate) stopped_at: Option<Timestamp>,
}

/// States as the API names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VmState {
    Starting,
    Running,
    Stopping,
    Stopped,
    Destroyed,
    Expunging,
    Error,
}

impl VmState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Destroyed => "Destroyed",
            Self::Expunging => "Expunging",
            Self::Error => "Error",
        }
    }

    /// Counts against the limits on machines, cores and memory.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping | Self::Stopped)
    }

    /// Holds cores and memory of its host.
    pub(crate) fn occupies(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping)
    }
}

impl Vm {
    /// All details, including those that only root sees.
    pub(crate) fn all_details(&self) -> BTreeMap<String, String> {
        let mut details = self.details.clone();
        if self.capacity_freed {
            details.insert("Message.ReservedCapacityFreed.Flag".to_owned(), "false".to_owned());
        }
        details
    }
}

/// Details that only root sees.
pub(crate) const HIDDEN_DETAILS: [&str; 4] =
    ["rootdisksize", "cpuOvercommitRatio", "memoryOvercommitRatio", "Message.ReservedCapacityFreed.Flag"];

/// A network card.
pub(crate) struct Nic {
    pub(crate) uuid: String,
    pub(crate) network: Key<Network>,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) mac: String,
    /// The network's broadcast domain is set aside for it, until its machine stops.
    pub(crate) reserved: bool,
}

/// A disk.
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) account: Key<Account>,
    pub(crate) zone: Key<Zone>,
    pub(crate) kind: VolumeKind,
    pub(crate) bytes: u64,
    pub(crate) vm: Option<Key<Vm>>,
    pub(crate) device: u64,
    pub(crate) attached: Option<Timestamp>,
    pub(crate) ready: bool,
    /// It cannot be deleted.
    pub(crate) protected: bool,
    /// Deleted with its machine. Listed until the storage is cleaned up.
    pub(crate) destroyed: bool,
}

impl Volume {
    /// State as the API names it.
    pub(crate) fn state_name(&self) -> &'static str {
        match () {
            () if self.destroyed => "Destroy",
            () if self.ready => "Ready",
            () => "Allocated",
        }
    }
}

/// What a disk was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VolumeKind {
    Root(Key<Template>, Key<ServiceOffering>),
    Data(Key<DiskOffering>),
}

/// Machines that are to be kept together or apart.
pub(crate) struct AffinityGroup {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) account: Key<Account>,
    pub(crate) kind: AffinityKind,
}

/// How machines of a group stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffinityKind {
    Anti,
    Together,
    SoftAnti,
    SoftTogether,
}

impl AffinityKind {
    pub(crate) const ALL: [Self; 4] = [Self::Anti, Self::Together, Self::SoftAnti, Self::SoftTogether];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anti => "host anti-affinity",
            Self::Together => "host affinity",
            Self::SoftAnti => "non-strict host anti-affinity",
            Self::SoftTogether => "non-strict host affinity",
        }
    }
}

/// A public key for machines.
pub(crate) struct SshKey {
    pub(crate) name: String,
    pub(crate) account: Key<Account>,
    pub(crate) public_key: String,
    pub(crate) fingerprint: String,
}

/// A tag on something.
pub(crate) struct Tag {
    pub(crate) resource_type: &'static str,
    pub(crate) resource: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) account: Key<Account>,
}

/// A record of a Kubernetes cluster that somebody else manages.
pub(crate) struct KubernetesCluster {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) account: Key<Account>,
    pub(crate) zone: Key<Zone>,
    pub(crate) network: Option<Key<Network>>,
    pub(crate) offering: Option<Key<ServiceOffering>>,
    pub(crate) members: Vec<Key<Vm>>,
}
