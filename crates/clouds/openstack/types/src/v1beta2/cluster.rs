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
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterSpec,
            /// Observed state.
            pub status: OpenStackClusterStatus,
        }
    }

    /// Desired state of an OpenStackCluster.
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.enableExternalNetwork) && !self.enableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true", "bastion floating IP cannot be set when enableExternalNetwork is false"), rule("has(self.enableExternalNetwork) && !self.enableExternalNetwork ? has(self.apiServer) && has(self.apiServer.enableFloatingIP) && !self.apiServer.enableFloatingIP : true", "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false")]))]
    pub struct OpenStackClusterSpec {
        required {
            /// Reference to the credentials of the cloud.
            pub identity_ref: OpenStackIdentityReference,
        }
        optional {
            /// Subnets to create, at most one. If empty, an existing network is used.
            #[schemars(extend("maxItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub managed_subnets: Vec<SubnetSpec>,
            /// Existing subnets of the cluster. Defaults to all subnets of the network.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// Subnet of the first address of nodes. Defaults to all subnets.
            pub primary_subnet: Option<SubnetParam>,
            /// Settings of the managed router.
            #[schemars(extend("x-kubernetes-validations" = [rule("has(self.externalIPs)", "managedRouter must not be empty if set")]))]
            pub managed_router: Option<ManagedRouter>,
            /// Existing router of the cluster.
            pub router: Option<RouterParam>,
            /// Settings of the managed network.
            #[schemars(extend("x-kubernetes-validations" = [rule("self == null || has(self.mtu) || has(self.enablePortSecurity)", "managedNetwork must not be empty if set")]))]
            pub managed_network: Option<ManagedNetwork>,
            /// Existing network of the cluster.
            pub network: Option<NetworkParam>,
            /// External network. Defaults to the only one that exists.
            pub external_network: Option<NetworkParam>,
            /// Whether the cluster has an external network. Defaults to true.
            pub enable_external_network: Option<bool>,
            /// Settings of the API server's endpoint.
            pub api_server: Option<APIServer>,
            /// Security groups to create. None are created if not set.
            pub managed_security_groups: Option<ManagedSecurityGroups>,
            /// Tags of all resources that are created for the cluster.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Endpoint of the API server. Set by the provider if empty; immutable from then on.
            pub control_plane_endpoint: Option<APIEndpoint>,
            /// Availability zones of control plane machines. Defaults to all zones.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub control_plane_availability_zones: Vec<String>,
            /// Whether Nova chooses the availability zone of control plane machines.
            pub control_plane_omit_availability_zone: Option<bool>,
            /// Bastion of the cluster.
            pub bastion: Option<Bastion>,
        }
    }

    /// Provisioning progress of a cluster, as the Cluster API contract defines it.
    pub struct ClusterInitialization {
        optional {
            /// Whether the infrastructure is provisioned. Stays true once it is.
            pub provisioned: bool,
        }
    }

    /// Observed state of an OpenStackCluster.
    pub struct OpenStackClusterStatus {
        optional {
            /// Conditions of the object, one per type.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
            pub conditions: Vec<Condition>,
            /// Provisioning progress, as the Cluster API contract defines it.
            pub initialization: Option<ClusterInitialization>,
            /// Network of the cluster.
            pub network: Option<NetworkStatusWithSubnets>,
            /// External network of the cluster.
            pub external_network: Option<NetworkStatus>,
            /// Router of the cluster.
            pub router: Option<Router>,
            /// Load balancer of the API server.
            pub api_server_managed_load_balancer: Option<LoadBalancer>,
            /// Availability zones that machines can be placed in, as the Cluster API contract defines them.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub failure_domains: Vec<FailureDomain>,
            /// Security group of control plane nodes.
            pub control_plane_security_group: Option<SecurityGroupStatus>,
            /// Security group of workers.
            pub worker_security_group: Option<SecurityGroupStatus>,
            /// Security group of the bastion.
            pub bastion_security_group: Option<SecurityGroupStatus>,
            /// Observed state of the bastion.
            pub bastion: Option<BastionStatus>,
        }
    }
}
