//! How the API server is reached.

use capstan_capi_types::wire::record;

use super::{NetworkParam, NetworkStatusWithSubnets, SubnetParam};

record! {
    /// The load balancer in front of the API server.
    pub struct APIServerLoadBalancer {
        optional {
            /// Whether there is one.
            #[schemars(extend("x-default" = true, "x-required" = true))]
            pub enabled: Option<bool>,
            /// Ports beside that of the API server.
            #[schemars(schema_with = "crate::schema::integers", extend("x-kubernetes-list-type" = "set"))]
            pub additional_ports: Vec<i64>,
            /// Addresses that may connect; all if empty.
            #[serde(rename = "allowedCIDRs")]
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub allowed_cidrs: Vec<String>,
            /// The Octavia provider; the default of the cloud if not set.
            pub provider: Option<String>,
            /// The network.
            pub network: Option<NetworkParam>,
            /// The subnets.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// The availability zone.
            pub availability_zone: Option<String>,
            /// The flavor.
            pub flavor: Option<String>,
            /// How control plane nodes are checked.
            pub monitor: Option<APIServerLoadBalancerMonitor>,
        }
    }

    /// How the load balancer checks control plane nodes.
    pub struct APIServerLoadBalancerMonitor {
        optional {
            /// Seconds between two checks.
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 0))]
            pub delay: i64,
            /// Seconds that a check may take.
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 0))]
            pub timeout: i64,
            /// Successful checks until a node is in.
            #[schemars(schema_with = "crate::schema::integer", extend("maximum" = 10, "minimum" = 0))]
            pub max_retries: i64,
            /// Failed checks until a node is out.
            #[schemars(schema_with = "crate::schema::integer", extend("maximum" = 10, "minimum" = 1))]
            pub max_retries_down: i64,
        }
    }

    /// A load balancer that is in use.
    pub struct LoadBalancer {
        required {
            /// Its name.
            pub name: String,
            /// Its id.
            pub id: String,
            /// Its address.
            pub ip: String,
            /// Its address in the network of the cluster.
            #[serde(rename = "internalIP")]
            pub internal_ip: String,
        }
        optional {
            /// Addresses that may connect; all if empty.
            #[serde(rename = "allowedCIDRs")]
            pub allowed_cidrs: Vec<String>,
            /// Tags; all of them in a filter.
            pub tags: Vec<String>,
            /// The network it is in.
            pub load_balancer_network: Option<NetworkStatusWithSubnets>,
        }
    }
}
