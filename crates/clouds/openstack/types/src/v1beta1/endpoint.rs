//! How the API server is reached.

use capstan_capi_types::wire::record;

use super::{NetworkParam, NetworkStatusWithSubnets, SubnetParam};

record! {
    /// Settings of the API server's load balancer.
    pub struct APIServerLoadBalancer {
        optional {
            /// Whether a load balancer is created.
            #[schemars(extend("x-default" = true, "x-required" = true))]
            pub enabled: Option<bool>,
            /// Additional ports of the load balancer.
            #[schemars(schema_with = "crate::schema::integers", extend("x-kubernetes-list-type" = "set"))]
            pub additional_ports: Vec<i64>,
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
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 0))]
            pub delay: i64,
            /// Timeout of a health check in seconds.
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 0))]
            pub timeout: i64,
            /// Successful checks until a member is online.
            #[schemars(schema_with = "crate::schema::integer", extend("maximum" = 10, "minimum" = 0))]
            pub max_retries: i64,
            /// Failed checks until a member is offline.
            #[schemars(schema_with = "crate::schema::integer", extend("maximum" = 10, "minimum" = 1))]
            pub max_retries_down: i64,
        }
    }

    /// Observed state of a load balancer.
    pub struct LoadBalancer {
        required {
            /// Name of the load balancer.
            pub name: String,
            /// Id of the load balancer.
            pub id: String,
            /// IP address of the load balancer.
            pub ip: String,
            /// IP address of the load balancer in the network of the cluster.
            #[serde(rename = "internalIP")]
            pub internal_ip: String,
        }
        optional {
            /// CIDRs that may connect. Empty means all.
            #[serde(rename = "allowedCIDRs")]
            pub allowed_cidrs: Vec<String>,
            /// Tags of the load balancer.
            pub tags: Vec<String>,
            /// Network of the load balancer.
            pub load_balancer_network: Option<NetworkStatusWithSubnets>,
        }
    }
}
