//! How the API server is reached.

use capstan_capi_types::wire::record;

use super::{NetworkParam, NetworkStatusWithSubnets, SubnetParam};

record! {
    /// How the API server is reached.
    pub struct APIServer {
        optional {
            /// Port of the API server; 6443 if not set.
            #[schemars(schema_with = "crate::schema::port")]
            pub port: Option<u16>,
            /// Address of the API server in the network of the cluster.
            #[serde(rename = "fixedIP")]
            pub fixed_ip: Option<String>,
            /// Floating IP of the API server; one is created if not set.
            #[serde(rename = "floatingIP")]
            pub floating_ip: Option<String>,
            /// Reach the API server through a floating IP; true if not set.
            #[serde(rename = "enableFloatingIP")]
            pub enable_floating_ip: Option<bool>,
            /// Create a load balancer with Octavia.
            pub managed_load_balancer: Option<APIServerLoadBalancer>,
        }
    }

    /// The load balancer in front of the API server.
    pub struct APIServerLoadBalancer {
        optional {
            /// Whether there is one.
            #[schemars(extend("x-default" = true))]
            pub enabled: Option<bool>,
            /// Ports beside that of the API server.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub additional_ports: Vec<i32>,
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
            #[schemars(extend("minimum" = 0))]
            pub delay: i32,
            /// Seconds that a check may take.
            #[schemars(extend("minimum" = 0))]
            pub timeout: i32,
            /// Successful checks until a node is in.
            #[schemars(extend("maximum" = 10, "minimum" = 0))]
            pub max_retries: i32,
            /// Failed checks until a node is out.
            #[schemars(extend("maximum" = 10, "minimum" = 1))]
            pub max_retries_down: i32,
        }
    }

    /// A load balancer that is in use.
    pub struct LoadBalancer {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
            /// Its address.
            #[schemars(extend("minLength" = 1))]
            pub ip: String,
            /// Its address in the network of the cluster.
            #[serde(rename = "internalIP")]
            #[schemars(extend("minLength" = 1))]
            pub internal_ip: String,
        }
        optional {
            /// Addresses that may connect; all if empty.
            #[serde(rename = "allowedCIDRs")]
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub allowed_cidrs: Vec<String>,
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// The network it is in.
            pub load_balancer_network: Option<NetworkStatusWithSubnets>,
        }
    }
}
