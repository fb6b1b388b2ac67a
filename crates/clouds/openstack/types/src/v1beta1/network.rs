//! Networks, subnets and routers.

use capstan_capi_types::wire::record;

use super::SubnetParam;

record! {
    /// A subnet to create.
    pub struct SubnetSpec {
        required {
            /// CIDR of the subnet.
            pub cidr: String,
        }
        optional {
            /// Name servers of the subnet. The only mutable field of a subnet.
            pub dns_nameservers: Vec<String>,
            /// Ranges that addresses are allocated from. Defaults to the whole CIDR.
            pub allocation_pools: Vec<AllocationPool>,
        }
    }

    /// A range of IP addresses, both ends included.
    pub struct AllocationPool {
        required {
            /// First IP address of the range.
            pub start: String,
            /// Last IP address of the range.
            pub end: String,
        }
    }

    /// An IP address of the router in the external network.
    pub struct ExternalRouterIPParam {
        required {
            /// Subnet of the IP address.
            pub subnet: SubnetParam,
        }
        optional {
            /// IP address to use. Defaults to any of the subnet.
            #[serde(rename = "fixedIP")]
            pub fixed_ip: String,
        }
    }

    /// Observed state of a network.
    pub struct NetworkStatus {
        required {
            /// Name of the network.
            pub name: String,
            /// Id of the network.
            pub id: String,
        }
        optional {
            /// Tags of the network.
            pub tags: Vec<String>,
        }
    }

    /// Observed state of a network with its subnets.
    pub struct NetworkStatusWithSubnets {
        required {
            /// Name of the network.
            pub name: String,
            /// Id of the network.
            pub id: String,
        }
        optional {
            /// Tags of the network.
            pub tags: Vec<String>,
            /// Subnets of the network.
            pub subnets: Vec<Subnet>,
        }
    }

    /// Observed state of a subnet.
    pub struct Subnet {
        required {
            /// Name of the subnet.
            pub name: String,
            /// Id of the subnet.
            pub id: String,
            /// CIDR of the subnet.
            pub cidr: String,
        }
        optional {
            /// Tags of the subnet.
            pub tags: Vec<String>,
        }
    }

    /// Observed state of a router.
    pub struct Router {
        required {
            /// Name of the router.
            pub name: String,
            /// Id of the router.
            pub id: String,
        }
        optional {
            /// Tags of the router.
            pub tags: Vec<String>,
            /// IP addresses of the router in the external network.
            pub ips: Vec<String>,
        }
    }
}
