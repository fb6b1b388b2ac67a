//! Stock content of every server: offerings and guest operating systems.

use crate::cloud::Cloud;
use crate::model::place::{
    GuestType, NetworkOffering, OfferedSize, OsType, ServiceOffering, Size, VpcOffering,
};
use crate::model::table::Key;

type Services = &'static [(&'static str, &'static str)];

const ROUTER: Services = &[
    ("Dns", "VirtualRouter"),
    ("StaticNat", "VirtualRouter"),
    ("Lb", "VirtualRouter"),
    ("Vpn", "VirtualRouter"),
    ("SourceNat", "VirtualRouter"),
    ("PortForwarding", "VirtualRouter"),
    ("Firewall", "VirtualRouter"),
    ("Dhcp", "VirtualRouter"),
    ("UserData", "VirtualRouter"),
];
const PLAIN: Services = &[("Dns", "VirtualRouter"), ("Dhcp", "VirtualRouter"), ("UserData", "VirtualRouter")];
const GROUPS: Services =
    &[("Dns", "VirtualRouter"), ("Dhcp", "VirtualRouter"), ("SecurityGroup", "SecurityGroupProvider")];
const TUNGSTEN: Services = &[("Dns", "Tungsten"), ("Connectivity", "Tungsten"), ("Dhcp", "Tungsten")];
const VPC: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "VpcVirtualRouter"),
    ("StaticNat", "VpcVirtualRouter"),
    ("Lb", "VpcVirtualRouter"),
    ("Vpn", "VpcVirtualRouter"),
    ("SourceNat", "VpcVirtualRouter"),
    ("PortForwarding", "VpcVirtualRouter"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const VPC_NO_LB: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "VpcVirtualRouter"),
    ("StaticNat", "VpcVirtualRouter"),
    ("Vpn", "VpcVirtualRouter"),
    ("SourceNat", "VpcVirtualRouter"),
    ("PortForwarding", "VpcVirtualRouter"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const VPC_INTERNAL_LB: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "VpcVirtualRouter"),
    ("Lb", "InternalLbVm"),
    ("SourceNat", "VpcVirtualRouter"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const NSX_VPC: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "Nsx"),
    ("StaticNat", "Nsx"),
    ("Lb", "Nsx"),
    ("SourceNat", "Nsx"),
    ("PortForwarding", "Nsx"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const NSX_VPC_ROUTED: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "Nsx"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const NETRIS_VPC_ROUTED: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "Netris"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const NETRIS_VPC: Services = &[
    ("Dns", "VpcVirtualRouter"),
    ("NetworkACL", "Netris"),
    ("StaticNat", "Netris"),
    ("Lb", "Netris"),
    ("Vpn", "VpcVirtualRouter"),
    ("SourceNat", "Netris"),
    ("PortForwarding", "Netris"),
    ("Dhcp", "VpcVirtualRouter"),
    ("UserData", "VpcVirtualRouter"),
];
const NSX: Services = &[
    ("Dns", "VirtualRouter"),
    ("StaticNat", "Nsx"),
    ("Lb", "Nsx"),
    ("SourceNat", "Nsx"),
    ("PortForwarding", "Nsx"),
    ("Firewall", "Nsx"),
    ("Dhcp", "VirtualRouter"),
    ("UserData", "VirtualRouter"),
];
const NSX_ROUTED: Services = &[
    ("Dns", "VirtualRouter"),
    ("Firewall", "Nsx"),
    ("Dhcp", "VirtualRouter"),
    ("UserData", "VirtualRouter"),
];
const CONFIG_DRIVE: Services = &[("UserData", "ConfigDrive")];

/// Name, what it is for, and its marks: `S`hared, `2` layer 2 (isolated otherwise), `v`lan and `r`anges given by the
/// caller, `c`onserving addresses, re`q`uired, `e`gress allowed, for a `V`PC, `i`nternal load balancers, `n`atted,
/// `R`outed.
const NETWORK_OFFERINGS: &[(&str, &str, &str, Services)] = &[
    (
        "DefaultSharedNetworkOfferingWithSGService",
        "Offering for Shared Security group enabled networks",
        "Svrc",
        GROUPS,
    ),
    ("DefaultSharedNetworkOffering", "Offering for Shared networks", "Svrc", PLAIN),
    (
        "DefaultTungstenSharedNetworkOfferingWithSGService",
        "Offering for Tungsten Shared Security group enabled networks",
        "Svrc",
        TUNGSTEN,
    ),
    (
        "DefaultIsolatedNetworkOfferingWithSourceNatService",
        "Offering for Isolated networks with Source Nat service enabled",
        "cq",
        ROUTER,
    ),
    (
        "DefaultIsolatedNetworkOffering",
        "Offering for Isolated networks with no Source Nat service",
        "vrc",
        PLAIN,
    ),
    (
        "DefaultSharedNetscalerEIPandELBNetworkOffering",
        "Offering for Shared networks with Elastic IP and Elastic LB capabilities",
        "Svrc",
        GROUPS,
    ),
    (
        "DefaultIsolatedNetworkOfferingForVpcNetworks",
        "Offering for Isolated Vpc networks with Source Nat service enabled",
        "Vc",
        VPC,
    ),
    (
        "DefaultIsolatedNetworkOfferingForVpcNetworksNoLB",
        "Offering for Isolated Vpc networks with Source Nat service enabled and LB service Disabled",
        "V",
        VPC_NO_LB,
    ),
    (
        "DefaultIsolatedNetworkOfferingForVpcNetworksWithInternalLB",
        "Offering for Isolated Vpc networks with Internal LB support",
        "Vi",
        VPC_INTERNAL_LB,
    ),
    (
        "DefaultNATNSXNetworkOfferingForVpc",
        "Offering for NSX enabled networks on VPCs - NAT mode",
        "Vn",
        NSX_VPC,
    ),
    (
        "DefaultRoutedNSXNetworkOfferingForVpc",
        "Offering for NSX enabled networks on VPCs - ROUTED mode",
        "VR",
        NSX_VPC_ROUTED,
    ),
    (
        "DefaultNATNSXNetworkOfferingForVpcWithInternalLB",
        "Offering for NSX enabled networks on VPCs with internal LB - NAT mode",
        "Vni",
        NSX_VPC,
    ),
    (
        "DefaultRoutedNetrisNetworkOfferingForVpc",
        "Offering for Netris enabled networks on VPCs - ROUTED mode",
        "VR",
        NETRIS_VPC_ROUTED,
    ),
    (
        "DefaultNATNetrisNetworkOfferingForVpc",
        "Offering for Netris enabled networks on VPCs - NAT mode",
        "Vn",
        NETRIS_VPC,
    ),
    ("DefaultNATNSXNetworkOffering", "Offering for NSX enabled networks - NAT mode", "n", NSX),
    ("DefaultRoutedNSXNetworkOffering", "Offering for NSX enabled networks - ROUTED mode", "R", NSX_ROUTED),
    ("QuickCloudNoServices", "Offering for QuickCloud with no services", "Svrc", &[]),
    ("DefaultL2NetworkOffering", "Offering for L2 networks", "2c", &[]),
    ("DefaultL2NetworkOfferingVlan", "Offering for L2 networks VLAN", "2vc", &[]),
    ("DefaultL2NetworkOfferingConfigDrive", "Offering for L2 networks with config drive", "2c", CONFIG_DRIVE),
    (
        "DefaultL2NetworkOfferingConfigDriveVlan",
        "Offering for L2 networks with config drive user data VLAN",
        "2vc",
        CONFIG_DRIVE,
    ),
    (
        "DefaultNetworkOfferingforKubernetesService",
        "Network Offering used for CloudStack Kubernetes service",
        "cqe",
        ROUTER,
    ),
    (
        "DefaultNSXNetworkOfferingforKubernetesService",
        "Network Offering for NSX CloudStack Kubernetes service",
        "cqen",
        NSX,
    ),
    (
        "DefaultNSXVPCNetworkOfferingforKubernetesService",
        "Network Offering for NSX CloudStack Kubernetes service on VPC",
        "Vcqen",
        NSX_VPC,
    ),
];

/// Name, whether it is a default, who provides what its router does not, its mode.
const VPC_OFFERINGS: &[(&str, bool, &str, Option<&str>)] = &[
    ("Default VPC offering", true, "", None),
    ("Default VPC  offering with Netscaler", false, "Netscaler", None),
    ("Redundant VPC offering", true, "", None),
    ("VPC offering with NSX - NAT Mode", false, "Nsx", Some("NATTED")),
    ("VPC offering with NSX - Route Mode", false, "Nsx", Some("ROUTED")),
    ("VPC offering with Netris - Route Mode", false, "Netris", Some("ROUTED")),
    ("VPC offering with Netris - NAT Mode", false, "Netris", Some("NATTED")),
];

/// Name, `systemvmtype`, MHz, MiB, whether it is restarted, network rate.
type SystemOffering = (&'static str, &'static str, u64, u64, bool, Option<u64>);
const SYSTEM_OFFERINGS: &[SystemOffering] = &[
    ("Console Proxy", "consoleproxy", 500, 1024, false, Some(0)),
    ("Secondary Storage VM", "secondarystoragevm", 500, 512, false, None),
    ("Software Router", "domainrouter", 500, 512, true, None),
    ("Internal LB Instance", "internalloadbalancervm", 256, 256, true, None),
    ("Elastic LB VM", "elasticloadbalancervm", 128, 128, true, Some(0)),
];

/// Guest operating systems with their categories; a real server has hundreds.
const OS_TYPES: &[(&str, &str)] = &[
    ("AlmaLinux 8", "AlmaLinux"),
    ("AlmaLinux 8.3", "AlmaLinux"),
    ("AlmaLinux 9", "AlmaLinux"),
    ("Amazon Linux 2 (64 bit)", "Other"),
    ("Amazon Linux 3 (64 bit)", "Other"),
    ("Apple Mac OS X 10.6 (32-bit)", "Other"),
    ("CentOS 5.6 (64-bit)", "CentOS"),
    ("CentOS 7", "CentOS"),
    ("Debian GNU/Linux 5.0 (64-bit)", "Debian"),
    ("Debian GNU/Linux 12 (64-bit)", "Debian"),
    ("Flatcar (64-bit)", "Other"),
    ("Rocky Linux 9", "Rocky Linux"),
    ("Ubuntu 22.04 LTS", "Ubuntu"),
    ("Ubuntu 24.04 LTS", "Ubuntu"),
];

impl Cloud {
    pub(super) fn stock_offerings(&mut self) {
        for (name, kind, mhz, memory_mib, offer_ha, network_rate) in SYSTEM_OFFERINGS {
            for (suffix, local_storage) in [("", false), (" - Local Storage", true)] {
                let it = ServiceOffering {
                    name: format!("System Offering For {name}{suffix}"),
                    display_text: None,
                    size: OfferedSize::Fixed(Size { cores: 1, mhz: *mhz, memory_mib: *memory_mib }),
                    system_vm_type: Some(kind),
                    network_rate: *network_rate,
                    offer_ha: *offer_ha,
                    default_use: true,
                    local_storage,
                    disk_offering: self.fresh_uuid(),
                };
                let uuid = self.fresh_uuid();
                self.service_offerings.insert(uuid, self.now, it);
            }
        }
        for (name, display_text, marks, services) in NETWORK_OFFERINGS {
            let has = |mark: char| marks.contains(mark);
            let it = NetworkOffering {
                name: (*name).to_owned(),
                display_text: (*display_text).to_owned(),
                guest_type: match () {
                    () if has('S') => GuestType::Shared,
                    () if has('2') => GuestType::L2,
                    () => GuestType::Isolated,
                },
                for_vpc: has('V'),
                specify_vlan: has('v'),
                specify_ip_ranges: has('r'),
                conserve_mode: has('c'),
                required: has('q'),
                egress_default_allow: has('e'),
                internal_lb: has('i'),
                network_mode: match () {
                    () if has('n') => Some("NATTED"),
                    () if has('R') => Some("ROUTED"),
                    () => None,
                },
                routing_mode: None,
                stock: true,
                enabled: true,
                services: services.to_vec(),
            };
            let uuid = self.fresh_uuid();
            self.network_offerings.insert(uuid, self.now, it);
        }
        for (name, default, provider, mode) in VPC_OFFERINGS {
            let routed = *mode == Some("ROUTED");
            let services = VPC
                .iter()
                .filter(|(service, _)| {
                    !routed || !matches!(*service, "StaticNat" | "Lb" | "Vpn" | "PortForwarding")
                })
                .map(|(service, by)| match (*service, *provider) {
                    ("Lb", "") => (*service, vec![*by, "InternalLbVm"]),
                    ("Lb", "Netscaler") => (*service, vec!["InternalLbVm", "Netscaler"]),
                    ("Dns" | "Dhcp" | "UserData", _) | (_, "" | "Netscaler") | ("Vpn", "Netris") => {
                        (*service, vec![*by])
                    }
                    (_, provider) => (*service, vec![provider]),
                })
                .collect();
            let it = VpcOffering {
                name: (*name).to_owned(),
                default: *default,
                enabled: true,
                network_mode: *mode,
                nsx: *provider == "Nsx",
                services,
            };
            let uuid = self.fresh_uuid();
            self.vpc_offerings.insert(uuid, self.now, it);
        }
    }

    pub(super) fn stock_os_types(&mut self) {
        let mut categories = std::collections::BTreeMap::new();
        for (name, category) in OS_TYPES {
            let id = categories.entry(*category).or_insert_with(|| self.env.uuid()).clone();
            let it = OsType { name: (*name).to_owned(), category: (id, (*category).to_owned()) };
            let uuid = self.fresh_uuid();
            self.os_types.insert(uuid, self.now, it);
        }
    }

    /// The operating system of a name, or the first there is.
    pub(super) fn os_type_named(&mut self, name: &str) -> Key<OsType> {
        if let Some(found) = self.os_types.iter().find(|os| os.name == name) {
            return found.key;
        }
        let it = OsType { name: name.to_owned(), category: (self.fresh_uuid(), "Other".to_owned()) };
        let uuid = self.fresh_uuid();
        self.os_types.insert(uuid, self.now, it)
    }
}
