//! `OpenStackCluster`: network, security groups and endpoint of a cluster.

use capstan_capi_types::core::{APIEndpoint, FailureDomain};
use capstan_capi_types::wire::record;
use capstan_object::{Condition, ObjectMeta, object};

use super::{
    APIServer, Bastion, BastionStatus, LoadBalancer, ManagedNetwork, ManagedRouter, ManagedSecurityGroups,
    NetworkParam, NetworkStatus, NetworkStatusWithSubnets, OpenStackIdentityReference, Router, RouterParam,
    SecurityGroupStatus, SubnetParam, SubnetSpec,
};
use crate::schema::rule;

object!(
    OpenStackCluster,
    "infrastructure.cluster.x-k8s.io" / "v1beta2",
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
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.enableExternalNetwork) && !self.enableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true", "bastion floating IP cannot be set when enableExternalNetwork is false"), rule("has(self.enableExternalNetwork) && !self.enableExternalNetwork ? has(self.apiServer) && has(self.apiServer.enableFloatingIP) && !self.apiServer.enableFloatingIP : true", "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false")]))]
    pub struct OpenStackClusterSpec {
        required {
            /// Where the credentials are.
            pub identity_ref: OpenStackIdentityReference,
        }
        optional {
            /// Subnets to create; one at most. Without one, an existing network is used.
            #[schemars(extend("maxItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub managed_subnets: Vec<SubnetSpec>,
            /// Existing subnets; all of the network if empty.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// Subnet of the first address of nodes; all subnets if not set.
            pub primary_subnet: Option<SubnetParam>,
            /// Settings of the router that is created.
            #[schemars(extend("x-kubernetes-validations" = [rule("has(self.externalIPs)", "managedRouter must not be empty if set")]))]
            pub managed_router: Option<ManagedRouter>,
            /// An existing router.
            pub router: Option<RouterParam>,
            /// Settings of the network that is created.
            #[schemars(extend("x-kubernetes-validations" = [rule("self == null || has(self.mtu) || has(self.enablePortSecurity)", "managedNetwork must not be empty if set")]))]
            pub managed_network: Option<ManagedNetwork>,
            /// An existing network.
            pub network: Option<NetworkParam>,
            /// The external network; the only one there is if not set.
            pub external_network: Option<NetworkParam>,
            /// Use an external network; true if not set.
            pub enable_external_network: Option<bool>,
            /// How the API server is reached.
            pub api_server: Option<APIServer>,
            /// Security groups to create; none if not set.
            pub managed_security_groups: Option<ManagedSecurityGroups>,
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

    /// Milestones of the infrastructure; contract with the core.
    pub struct ClusterInitialization {
        optional {
            /// The infrastructure is there. Written once.
            pub provisioned: bool,
        }
    }

    /// Observed state of a cluster's infrastructure.
    pub struct OpenStackClusterStatus {
        optional {
            /// Observed aspects of the object, one per type.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
            pub conditions: Vec<Condition>,
            /// Milestones; contract with the core.
            pub initialization: Option<ClusterInitialization>,
            /// The network.
            pub network: Option<NetworkStatusWithSubnets>,
            /// The external network; the only one there is if not set.
            pub external_network: Option<NetworkStatus>,
            /// An existing router.
            pub router: Option<Router>,
            /// The load balancer in front of the API server.
            pub api_server_managed_load_balancer: Option<LoadBalancer>,
            /// Availability zones that machines can be placed in; contract with the core.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub failure_domains: Vec<FailureDomain>,
            /// Security group of control plane nodes.
            pub control_plane_security_group: Option<SecurityGroupStatus>,
            /// Security group of workers.
            pub worker_security_group: Option<SecurityGroupStatus>,
            /// Security group of the bastion.
            pub bastion_security_group: Option<SecurityGroupStatus>,
            /// The bastion.
            pub bastion: Option<BastionStatus>,
        }
    }
}
