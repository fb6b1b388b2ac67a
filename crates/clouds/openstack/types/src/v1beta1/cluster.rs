//! `OpenStackCluster`: network, security groups and endpoint of a cluster.

use std::collections::BTreeMap;

use capstan_capi_types::core::V1Beta1Condition;
use capstan_capi_types::v1beta1::core::{APIEndpoint, FailureDomainSpec};
use capstan_capi_types::wire::record;
use capstan_object::{ObjectMeta, object};

use super::{
    APIServerLoadBalancer, Bastion, BastionStatus, ClusterInitialization, ExternalRouterIPParam,
    LoadBalancer, ManagedSecurityGroups, NetworkParam, NetworkStatus, NetworkStatusWithSubnets,
    OpenStackIdentityReference, Router, RouterParam, SecurityGroupStatus, SubnetParam, SubnetSpec,
};
use crate::schema::rule;

object!(
    OpenStackCluster,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "OpenStackCluster",
    "openstackclusters",
    Namespaced
);

record! {
    /// The infrastructure of a cluster on OpenStack.
    pub struct OpenStackCluster {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterSpec,
            /// Observed state.
            pub status: OpenStackClusterStatus,
        }
    }

    /// Desired state of a cluster's infrastructure.
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.disableExternalNetwork) && self.disableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true", "bastion floating IP cannot be set when disableExternalNetwork is true"), rule("has(self.disableExternalNetwork) && self.disableExternalNetwork ? has(self.disableAPIServerFloatingIP) && self.disableAPIServerFloatingIP : true", "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true")]))]
    pub struct OpenStackClusterSpec {
        required {
            /// Where the credentials are.
            pub identity_ref: OpenStackIdentityReference,
        }
        optional {
            /// Subnets to create; one at most. Without one, an existing network is used.
            #[schemars(extend("maxItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub managed_subnets: Vec<SubnetSpec>,
            /// An existing router.
            pub router: Option<RouterParam>,
            /// An existing network.
            pub network: Option<NetworkParam>,
            /// Existing subnets; all of the network if empty.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// Subnet of the first address of nodes; all subnets if not set.
            pub primary_subnet: Option<SubnetParam>,
            /// The longest packet of the network that is created.
            #[serde(rename = "networkMTU")]
            #[schemars(schema_with = "crate::schema::integer")]
            pub network_mtu: Option<i64>,
            /// Addresses of the router in the external network.
            #[serde(rename = "externalRouterIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub external_router_ips: Vec<ExternalRouterIPParam>,
            /// The external network; the only one there is if not set.
            pub external_network: Option<NetworkParam>,
            /// Use no external network.
            pub disable_external_network: Option<bool>,
            /// Load balancer in front of the API server.
            pub api_server_load_balancer: Option<APIServerLoadBalancer>,
            /// Do not reach the API server through a floating IP.
            #[serde(rename = "disableAPIServerFloatingIP")]
            pub disable_api_server_floating_ip: Option<bool>,
            /// Floating IP of the API server; one is created if not set.
            #[serde(rename = "apiServerFloatingIP")]
            pub api_server_floating_ip: Option<String>,
            /// Address of the API server in the network of the cluster.
            #[serde(rename = "apiServerFixedIP")]
            pub api_server_fixed_ip: Option<String>,
            /// Port of the API server; 6443 if not set.
            #[schemars(schema_with = "crate::schema::port")]
            pub api_server_port: Option<u16>,
            /// Security groups to create; none if not set.
            pub managed_security_groups: Option<ManagedSecurityGroups>,
            /// Ports of the network that is created are not guarded.
            pub disable_port_security: Option<bool>,
            /// Tags of everything that is created.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Where the API server is reached; filled in if not set, and fixed from then on.
            pub control_plane_endpoint: Option<APIEndpoint>,
            /// Zones for control plane machines; all if empty.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub control_plane_availability_zones: Vec<String>,
            /// Leave the zone of control plane machines to Nova.
            pub control_plane_omit_availability_zone: Option<bool>,
            /// The bastion.
            pub bastion: Option<Bastion>,
        }
    }

    /// Observed state of a cluster's infrastructure.
    pub struct OpenStackClusterStatus {
        required {
            /// Usable; for those who follow the contract v1beta1.
            #[schemars(extend("x-default" = false))]
            pub ready: bool,
        }
        optional {
            /// Milestones; contract with the core.
            pub initialization: Option<ClusterInitialization>,
            /// The network.
            pub network: Option<NetworkStatusWithSubnets>,
            /// The external network; the only one there is if not set.
            pub external_network: Option<NetworkStatus>,
            /// An existing router.
            pub router: Option<Router>,
            /// Load balancer in front of the API server.
            pub api_server_load_balancer: Option<LoadBalancer>,
            /// Availability zones that machines can be placed in; contract with the core.
            pub failure_domains: BTreeMap<String, FailureDomainSpec>,
            /// Security group of control plane nodes.
            pub control_plane_security_group: Option<SecurityGroupStatus>,
            /// Security group of workers.
            pub worker_security_group: Option<SecurityGroupStatus>,
            /// Security group of the bastion.
            pub bastion_security_group: Option<SecurityGroupStatus>,
            /// The bastion.
            pub bastion: Option<BastionStatus>,
            /// Why it failed for good; what earlier versions left there.
            pub failure_reason: Option<String>,
            /// The same for people.
            pub failure_message: Option<String>,
            /// Observed aspects of the object, one per type.
            pub conditions: Vec<V1Beta1Condition>,
        }
    }
}
