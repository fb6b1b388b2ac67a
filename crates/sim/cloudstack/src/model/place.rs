//! What an operator provides: zones, hosts, offerings, templates.

use super::identity::Account;
use super::table::Key;

pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) enabled: bool,
    pub(crate) token: String,
    pub(crate) dns: String,
    pub(crate) guest_cidr: ipnet::Ipv4Net,
    /// Ids and ranges that routed networks get theirs from.
    pub(crate) routed_subnets: Vec<(String, ipnet::Ipv4Net)>,
    pub(crate) physical_network: String,
    pub(crate) public_network: String,
    pub(crate) public_vlan: String,
    pub(crate) pod: String,
    pub(crate) image_store: String,
    pub(crate) primary_storage: String,
}

/// A host and what its virtual machines may use of it.
pub(crate) struct Host {
    pub(crate) zone: Key<Zone>,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) cluster: (String, String),
    pub(crate) cores: u64,
    pub(crate) mhz: u64,
    pub(crate) memory_mib: u64,
    pub(crate) state: HostState,
    /// Cores, MHz and MiB of system VMs and routers.
    pub(crate) system: (u64, u64, u64),
}

/// Whether a host takes virtual machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostState {
    Enabled,
    Disabled,
    PrepareForMaintenance,
    Maintenance,
}

impl HostState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
            Self::PrepareForMaintenance => "PrepareForMaintenance",
            Self::Maintenance => "Maintenance",
        }
    }
}

/// Size of virtual machines.
pub(crate) struct ServiceOffering {
    pub(crate) name: String,
    pub(crate) display_text: Option<String>,
    pub(crate) size: OfferedSize,
    pub(crate) system_vm_type: Option<&'static str>,
    /// Mbit/s.
    pub(crate) network_rate: Option<u64>,
    pub(crate) offer_ha: bool,
    pub(crate) default_use: bool,
    pub(crate) local_storage: bool,
    pub(crate) disk_offering: String,
}

/// What an offering says about the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedSize {
    /// Always this.
    Fixed(Size),
    /// Whatever the caller asks for.
    Custom,
    /// What the caller asks for, within bounds of cores and memory, at a given speed.
    Constrained {
        /// Least and most cores.
        cores: (u64, u64),
        /// Least and most MiB.
        memory_mib: (u64, u64),
        /// Speed of every core.
        mhz: u64,
    },
}

/// Size of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub cores: u64,
    /// Speed of a core.
    pub mhz: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// Size of data disks.
pub(crate) struct DiskOffering {
    pub(crate) name: String,
    pub(crate) display_text: String,
    /// None if the caller says.
    pub(crate) gib: Option<u64>,
}

/// Kind of a guest network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestType {
    /// One tenant's own, behind a router.
    Isolated,
    /// Everybody's.
    Shared,
    /// Layer 2 only.
    L2,
}

impl GuestType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Isolated => "Isolated",
            Self::Shared => "Shared",
            Self::L2 => "L2",
        }
    }
}

/// Kind of networks.
pub(crate) struct NetworkOffering {
    pub(crate) name: String,
    pub(crate) display_text: String,
    pub(crate) guest_type: GuestType,
    pub(crate) for_vpc: bool,
    pub(crate) specify_vlan: bool,
    pub(crate) specify_ip_ranges: bool,
    pub(crate) conserve_mode: bool,
    pub(crate) required: bool,
    pub(crate) egress_default_allow: bool,
    pub(crate) internal_lb: bool,
    pub(crate) network_mode: Option<&'static str>,
    /// `Static` or `Dynamic`, where one was given.
    pub(crate) routing_mode: Option<&'static str>,
    /// Every server has it.
    pub(crate) stock: bool,
    pub(crate) enabled: bool,
    /// Service and who provides it.
    pub(crate) services: Vec<(&'static str, &'static str)>,
}

impl NetworkOffering {
    pub(crate) fn offers(&self, service: &str) -> bool {
        self.services.iter().any(|(name, _)| *name == service)
    }

    pub(crate) fn provided_by(&self, provider: &str) -> bool {
        self.services.iter().any(|(_, by)| *by == provider)
    }

    /// Networks are routed by a router of CloudStack's own, not by somebody's switches.
    pub(crate) fn is_router_gateway(&self) -> bool {
        let guards = |service: &str| matches!(service, "Firewall" | "NetworkACL");
        let mut guards = self.services.iter().filter(|(service, _)| guards(service));
        self.network_mode == Some("ROUTED")
            && guards.all(|(_, by)| matches!(*by, "VirtualRouter" | "VpcVirtualRouter"))
    }
}

/// Kind of VPCs.
pub(crate) struct VpcOffering {
    pub(crate) name: String,
    pub(crate) default: bool,
    pub(crate) enabled: bool,
    pub(crate) network_mode: Option<&'static str>,
    pub(crate) nsx: bool,
    pub(crate) services: Vec<(&'static str, Vec<&'static str>)>,
}

impl VpcOffering {
    /// VPCs are routed by a router of CloudStack's own, or by Netris.
    pub(crate) fn is_gateway(&self) -> bool {
        let acl = self.services.iter().find(|(service, _)| *service == "NetworkACL");
        self.network_mode == Some("ROUTED") && acl.is_some_and(|(_, by)| !by.contains(&"Nsx"))
    }
}

/// A guest operating system.
pub(crate) struct OsType {
    pub(crate) name: String,
    pub(crate) category: (String, String),
}

/// An image.
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) display_text: String,
    pub(crate) account: Key<Account>,
    pub(crate) zones: Vec<Key<Zone>>,
    pub(crate) cross_zones: bool,
    pub(crate) os_type: Key<OsType>,
    pub(crate) kind: TemplateKind,
    pub(crate) public: bool,
    pub(crate) featured: bool,
    pub(crate) format: String,
    pub(crate) hypervisor: String,
    pub(crate) url: String,
    pub(crate) size: u64,
    pub(crate) requires_hvm: bool,
    /// Kubernetes on it, with `v`.
    pub(crate) kubernetes: Option<String>,
}

/// Whose image it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateKind {
    BuiltIn,
    System,
    User,
}

impl TemplateKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "BUILTIN",
            Self::System => "SYSTEM",
            Self::User => "USER",
        }
    }
}
