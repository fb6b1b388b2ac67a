//! Networks, subnets and routers.

use capstan_capi_types::wire::record;

use super::SubnetParam;

record! {
    /// A subnet to create.
    pub struct SubnetSpec {
        required {
            /// Its range of addresses.
            pub cidr: String,
        }
        optional {
            /// Name servers of the subnet. The only part of a subnet that can be changed later.
            pub dns_nameservers: Vec<String>,
            /// Addresses that are handed out; all of them if empty.
            pub allocation_pools: Vec<AllocationPool>,
        }
    }

    /// Addresses that a subnet hands out, both ends included.
    pub struct AllocationPool {
        required {
            /// The first address.
            pub start: String,
            /// The last address.
            pub end: String,
        }
    }

    /// An address of the router in the external network.
    pub struct ExternalRouterIPParam {
        required {
            /// The subnet.
            pub subnet: SubnetParam,
        }
        optional {
            /// An address.
            #[serde(rename = "fixedIP")]
            pub fixed_ip: String,
        }
    }

    /// A network that is in use.
    pub struct NetworkStatus {
        required {
            /// Its name.
            pub name: String,
            /// Its id.
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            pub tags: Vec<String>,
        }
    }

    /// A network that is in use, with its subnets.
    pub struct NetworkStatusWithSubnets {
        required {
            /// Its name.
            pub name: String,
            /// Its id.
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            pub tags: Vec<String>,
            /// The subnets.
            pub subnets: Vec<Subnet>,
        }
    }

    /// A subnet that is in use.
    pub struct Subnet {
        required {
            /// Its name.
            pub name: String,
            /// Its id.
            pub id: String,
            /// Its range of addresses.
            pub cidr: String,
        }
        optional {
            /// Tags; all of them in a filter.
            pub tags: Vec<String>,
        }
    }

    /// A router that is in use.
    pub struct Router {
        required {
            /// Its name.
            pub name: String,
            /// Its id.
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            pub tags: Vec<String>,
            /// Its addresses in the external network.
            pub ips: Vec<String>,
        }
    }
}
