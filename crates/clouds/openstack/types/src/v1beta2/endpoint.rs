//! How the API server is reached.

use capstan_capi_types::wire::record;

use super::{NetworkParam, NetworkStatusWithSubnets, SubnetParam};

record! {
    /// Settings of the API server's endpoint.
    pub struct APIServer {
        optional {
            /// Port of the API server. Defaults to 6443.
            #[schemars(schema_with = "crate::schema::port")]
            pub port: Option<u16>,
            /// IP address of the API server in the network of the cluster.
            #[serde(rename = "fixedIP")]
            pub fixed_ip: Option<String>,
            /// Floating IP of the API server. Defaults to a new one.
            #[serde(rename = "floatingIP")]
            pub floating_ip: Option<String>,
            /// Whether the API server has a floating IP. Defaults to true.
            #[serde(rename = "enableFloatingIP")]
            pub enable_floating_ip: Option<bool>,
            /// Load balancer to create with Octavia.
            pub managed_load_balancer: Option<APIServerLoadBalancer>,
        }
    }

    /// Settings of the API server's load balancer.
    pub struct APIServerLoadBalancer {
        optional {
            /// Whether a load balancer is created.
            #[schemars(extend("x-default" = true))]
            pub enabled: Option<bool>,
            /// Additional ports of the load balancer.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub additional_ports: Vec<i32>,
            /// CIDRs that may connect. Defaults to all.
            #[serde(rename = "allowedCIDRs")]
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub allowed_cidrs: Vec<String>,
            /// Octavia provider. Defaults to that of the cloud.
            pub provider: Option<String>,
            /// Network of the VIP.
            pub network: Option<NetworkParam>,
            /// Subnets of the VIP.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// Availability zone of the load balancer.
            pub availability_zone: Option<String>,
            /// Octavia flavor of the load balancer.
            pub flavor: Option<String>,
            /// Health monitor of the load balancer.
            pub monitor: Option<APIServerLoadBalancerMonitor>,
        }
    }

    /// Health monitor of the API server's load balancer.
    pub struct APIServerLoadBalancerMonitor {
        optional {
            /// Seconds between health checks.
            #[schemars(extend("minimum" = 0))]
            pub delay: i32,
            /// Timeout of a health check in seconds.
            #[schemars(extend("minimum" = 0))]
            pub timeout: i32,
            /// Successful checks until a member is online.
            #[schemars(extend("maximum" = 10, "minimum" = 0))]
            pub max_retries: i32,
            /// Failed checks until a member is offline.
            #[schemars(extend("maximum" = 10, "minimum" = 1))]
            pub max_retries_down: i32,
        }
    }

    /// Observed state of a load balancer.
    pub struct LoadBalancer {
        required {
            /// Name of the load balancer.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the load balancer.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
            /// IP address of the load balancer.
            #[schemars(extend("minLength" = 1))]
            pub ip: String,
            /// IP address of the load balancer in the network of the cluster.
            #[serde(rename = "internalIP")]
            #[schemars(extend("minLength" = 1))]
            pub internal_ip: String,
        }
        optional {
            /// CIDRs that may connect. Empty means all.
            #[serde(rename = "allowedCIDRs")]
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub allowed_cidrs: Vec<String>,
            /// Tags of the load balancer.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Network of the load balancer.
            pub load_balancer_network: Option<NetworkStatusWithSubnets>,
        }
    }
}
