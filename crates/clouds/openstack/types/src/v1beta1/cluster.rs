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
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterSpec,
            /// Observed state.
            pub status: OpenStackClusterStatus,
        }
    }

    /// Desired state of an OpenStackCluster.
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.disableExternalNetwork) && self.disableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true", "bastion floating IP cannot be set when disableExternalNetwork is true"), rule("has(self.disableExternalNetwork) && self.disableExternalNetwork ? has(self.disableAPIServerFloatingIP) && self.disableAPIServerFloatingIP : true", "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true")]))]
    pub struct OpenStackClusterSpec {
        required {
            /// Reference to the credentials of the cloud.
            pub identity_ref: OpenStackIdentityReference,
        }
        optional {
            /// Subnets to create, at most one. If empty, an existing network is used.
            #[schemars(extend("maxItems" = 1, "x-kubernetes-list-type" = "atomic"))]
            pub managed_subnets: Vec<SubnetSpec>,
            /// Existing router of the cluster.
            pub router: Option<RouterParam>,
            /// Existing network of the cluster.
            pub network: Option<NetworkParam>,
            /// Existing subnets of the cluster. Defaults to all subnets of the network.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub subnets: Vec<SubnetParam>,
            /// Subnet of the first address of nodes. Defaults to all subnets.
            pub primary_subnet: Option<SubnetParam>,
            /// MTU of the managed network.
            #[serde(rename = "networkMTU")]
            #[schemars(schema_with = "crate::schema::integer")]
            pub network_mtu: Option<i64>,
            /// IP addresses of the managed router in the external network.
            #[serde(rename = "externalRouterIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub external_router_ips: Vec<ExternalRouterIPParam>,
            /// External network. Defaults to the only one that exists.
            pub external_network: Option<NetworkParam>,
            /// Whether the cluster has no external network.
            pub disable_external_network: Option<bool>,
            /// Load balancer of the API server.
            pub api_server_load_balancer: Option<APIServerLoadBalancer>,
            /// Whether the API server has no floating IP.
            #[serde(rename = "disableAPIServerFloatingIP")]
            pub disable_api_server_floating_ip: Option<bool>,
            /// Floating IP of the API server. Defaults to a new one.
            #[serde(rename = "apiServerFloatingIP")]
            pub api_server_floating_ip: Option<String>,
            /// IP address of the API server in the network of the cluster.
            #[serde(rename = "apiServerFixedIP")]
            pub api_server_fixed_ip: Option<String>,
            /// Port of the API server. Defaults to 6443.
            #[schemars(schema_with = "crate::schema::port")]
            pub api_server_port: Option<u16>,
            /// Security groups to create. None are created if not set.
            pub managed_security_groups: Option<ManagedSecurityGroups>,
            /// Whether port security is disabled in the managed network.
            pub disable_port_security: Option<bool>,
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

    /// Observed state of an OpenStackCluster.
    pub struct OpenStackClusterStatus {
        required {
            /// Whether the infrastructure is ready; part of the contract v1beta1.
            #[schemars(extend("x-default" = false))]
            pub ready: bool,
        }
        optional {
            /// Provisioning progress, as the Cluster API contract defines it.
            pub initialization: Option<ClusterInitialization>,
            /// Network of the cluster.
            pub network: Option<NetworkStatusWithSubnets>,
            /// External network of the cluster.
            pub external_network: Option<NetworkStatus>,
            /// Router of the cluster.
            pub router: Option<Router>,
            /// Load balancer of the API server.
            pub api_server_load_balancer: Option<LoadBalancer>,
            /// Availability zones that machines can be placed in, as the Cluster API contract defines them.
            pub failure_domains: BTreeMap<String, FailureDomainSpec>,
            /// Security group of control plane nodes.
            pub control_plane_security_group: Option<SecurityGroupStatus>,
            /// Security group of workers.
            pub worker_security_group: Option<SecurityGroupStatus>,
            /// Security group of the bastion.
            pub bastion_security_group: Option<SecurityGroupStatus>,
            /// Observed state of the bastion.
            pub bastion: Option<BastionStatus>,
            /// Reason of a terminal failure. Written by earlier versions only.
            pub failure_reason: Option<String>,
            /// Message of a terminal failure. Written by earlier versions only.
            pub failure_message: Option<String>,
            /// Conditions of the object, one per type.
            pub conditions: Vec<V1Beta1Condition>,
        }
    }
}
