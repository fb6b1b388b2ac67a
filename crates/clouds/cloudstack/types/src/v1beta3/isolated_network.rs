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
    /// An isolated network with a public IP address and a load balancer. Created by the provider.
    pub struct CloudStackIsolatedNetwork {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackIsolatedNetworkSpec,
        /// Observed state.
        pub status: CloudStackIsolatedNetworkStatus,
    }
}

record! {
    /// Desired state of a CloudStackIsolatedNetwork.
    pub struct CloudStackIsolatedNetworkSpec {
        required {
            /// Endpoint of the API server.
            pub control_plane_endpoint: Endpoint,
            /// Name of the failure domain that the network belongs to.
            pub failure_domain_name: String,
        }
        optional {
            /// Name of the network.
            pub name: String,
            /// Id of the network. Set by the provider.
            pub id: String,
            /// Gateway of a network that the provider creates.
            pub gateway: String,
            /// Netmask of a network that the provider creates.
            pub netmask: String,
            /// Name of the network offering of a network that the provider creates.
            pub offering: String,
            /// Virtual private cloud that the network is a tier of.
            pub vpc: Option<Vpc>,
        }
    }

    /// Observed state of a CloudStackIsolatedNetwork.
    pub struct CloudStackIsolatedNetworkStatus {
        required {
            /// Whether machines can be placed in the network.
            pub ready: bool,
        }
        optional {
            /// Conditions of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Provisioning progress.
            pub initialization: Initialization,
            /// Id of the public IP address.
            #[serde(rename = "publicIPID")]
            pub public_ip_id: String,
            /// Id of the load balancer rule.
            #[serde(rename = "loadBalancerRuleID")]
            pub load_balancer_rule_id: String,
            /// Routing mode of a routed network: `Static` or `Dynamic`.
            pub routing_mode: String,
        }
    }
}
