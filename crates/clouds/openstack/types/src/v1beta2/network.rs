//! Networks, subnets and routers.

use capstan_capi_types::wire::record;

use super::SubnetParam;

record! {
    /// A subnet to create.
    pub struct SubnetSpec {
        required {
            /// CIDR of the subnet.
            #[schemars(extend("minLength" = 1))]
            pub cidr: String,
        }
        optional {
            /// Name servers of the subnet. The only mutable field of a subnet.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub dns_nameservers: Vec<String>,
            /// Ranges that addresses are allocated from. Defaults to the whole CIDR.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allocation_pools: Vec<AllocationPool>,
        }
    }

    /// A range of IP addresses, both ends included.
    pub struct AllocationPool {
        required {
            /// First IP address of the range.
            #[schemars(extend("minLength" = 1))]
            pub start: String,
            /// Last IP address of the range.
            #[schemars(extend("minLength" = 1))]
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

    /// Settings of the managed router.
    pub struct ManagedRouter {
        optional {
            /// IP addresses of the router in the external network.
            #[serde(rename = "externalIPs")]
            #[schemars(extend("minItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub external_ips: Vec<ExternalRouterIPParam>,
        }
    }

    /// Settings of the managed network.
    pub struct ManagedNetwork {
        optional {
            /// MTU of the network. Defaults to that of the cloud.
            pub mtu: Option<i32>,
            /// Whether port security is enabled in the network.
            pub enable_port_security: Option<bool>,
        }
    }

    /// Observed state of a network.
    pub struct NetworkStatus {
        required {
            /// Name of the network.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the network.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags of the network.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
        }
    }

    /// Observed state of a network with its subnets.
    pub struct NetworkStatusWithSubnets {
        required {
            /// Name of the network.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the network.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags of the network.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Subnets of the network.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<Subnet>,
        }
    }

    /// Observed state of a subnet.
    pub struct Subnet {
        required {
            /// Name of the subnet.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the subnet.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
            /// CIDR of the subnet.
            #[schemars(extend("minLength" = 1))]
            pub cidr: String,
        }
        optional {
            /// Tags of the subnet.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
        }
    }

    /// Observed state of a router.
    pub struct Router {
        required {
            /// Name of the router.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the router.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
        optional {
            /// Tags of the router.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// IP addresses of the router in the external network.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub ips: Vec<String>,
        }
    }
}
