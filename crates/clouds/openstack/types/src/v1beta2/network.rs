//! Networks, subnets and routers.

use capstan_capi_types::wire::record;

use super::SubnetParam;

record! {
    /// A subnet to create.
    pub struct SubnetSpec {
        required {
            /// Its range of addresses.
            #[schemars(extend("minLength" = 1))]
            pub cidr: String,
        }
        optional {
            /// Name servers of the subnet. The only part of a subnet that can be changed later.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub dns_nameservers: Vec<String>,
            /// Addresses that are handed out; all of them if empty.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allocation_pools: Vec<AllocationPool>,
        }
    }

    /// Addresses that a subnet hands out, both ends included.
    pub struct AllocationPool {
        required {
            /// The first address.
            #[schemars(extend("minLength" = 1))]
            pub start: String,
            /// The last address.
            #[schemars(extend("minLength" = 1))]
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

    /// The router that is created for the cluster.
    pub struct ManagedRouter {
        optional {
            /// Addresses of the router in the external network.
            #[serde(rename = "externalIPs")]
            #[schemars(extend("minItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub external_ips: Vec<ExternalRouterIPParam>,
        }
    }

    /// The network that is created for the cluster.
    pub struct ManagedNetwork {
        optional {
            /// The longest packet; the default of the cloud if not set.
            pub mtu: Option<i32>,
            /// Ports of the network are guarded.
            pub enable_port_security: Option<bool>,
        }
    }

    /// A network that is in use.
    pub struct NetworkStatus {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
        }
    }

    /// A network that is in use, with its subnets.
    pub struct NetworkStatusWithSubnets {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// The subnets.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<Subnet>,
        }
    }

    /// A subnet that is in use.
    pub struct Subnet {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
            /// Its range of addresses.
            #[schemars(extend("minLength" = 1))]
            pub cidr: String,
        }
        optional {
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
        }
    }

    /// A router that is in use.
    pub struct Router {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Its addresses in the external network.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub ips: Vec<String>,
        }
    }
}
