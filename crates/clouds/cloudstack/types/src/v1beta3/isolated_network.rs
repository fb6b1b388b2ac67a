//! `CloudStackIsolatedNetwork`: a network of one's own, with a public address and a load balancer.

use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, ObjectMeta, object};

use super::common::{Endpoint, Initialization};
use super::failure_domain::Vpc;

object!(
    CloudStackIsolatedNetwork,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackIsolatedNetwork",
    "cloudstackisolatednetworks",
    Namespaced
);

wire! {
    /// A network of one's own, with a public address and a load balancer. Made by the provider.
    pub struct CloudStackIsolatedNetwork {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackIsolatedNetworkSpec,
        /// What was observed.
        pub status: CloudStackIsolatedNetworkStatus,
    }
}

record! {
    /// What is wanted of a network.
    pub struct CloudStackIsolatedNetworkSpec {
        required {
            /// Where the API server is reached.
            pub control_plane_endpoint: Endpoint,
            /// Failure domain it belongs to.
            pub failure_domain_name: String,
        }
        optional {
            /// Its name in CloudStack.
            pub name: String,
            /// Its id in CloudStack; filled in.
            pub id: String,
            /// Gateway, if it is made.
            pub gateway: String,
            /// Netmask, if it is made.
            pub netmask: String,
            /// Name of the network offering, if it is made.
            pub offering: String,
            /// The virtual private cloud it is a tier of.
            pub vpc: Option<Vpc>,
        }
    }

    /// What was observed of a network.
    pub struct CloudStackIsolatedNetworkStatus {
        required {
            /// Machines can be put there.
            pub ready: bool,
        }
        optional {
            /// Observed aspects of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Milestones on the way to being usable.
            pub initialization: Initialization,
            /// Id of the public address.
            #[serde(rename = "publicIPID")]
            pub public_ip_id: String,
            /// Id of the load balancer rule.
            #[serde(rename = "loadBalancerRuleID")]
            pub load_balancer_rule_id: String,
            /// `Static` or `Dynamic` on routed networks.
            pub routing_mode: String,
        }
    }
}
