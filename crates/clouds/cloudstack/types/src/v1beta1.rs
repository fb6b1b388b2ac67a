//! `v1beta1` as CAPC had it: zones instead of failure domains, one account for all of them, keys by convention in a
//! Secret called `global`.

use std::collections::BTreeMap;

use capstan_capi_types::kubernetes::ObjectReference;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{ObjectMeta, Time, object};
use serde_json::{Map, Value};

use crate::v1beta2::{CloudStackIsolatedNetworkStatus, FailureDomainSpec, Ready, any_object};
use crate::v1beta3::{
    Address, CloudStackMachineStateCheckerSpec, CloudStackMachineStateCheckerStatus, DiskOffering, Endpoint,
    Identifier,
};

macro_rules! kinds {
    ($($kind:ident = $name:literal, $plural:literal;)*) => {$(
        object!($kind, "infrastructure.cluster.x-k8s.io" / "v1beta1", $name, $plural, Namespaced);
    )*};
}

kinds! {
    CloudStackCluster = "CloudStackCluster", "cloudstackclusters";
    CloudStackMachine = "CloudStackMachine", "cloudstackmachines";
    CloudStackMachineTemplate = "CloudStackMachineTemplate", "cloudstackmachinetemplates";
    CloudStackIsolatedNetwork = "CloudStackIsolatedNetwork", "cloudstackisolatednetworks";
    CloudStackAffinityGroup = "CloudStackAffinityGroup", "cloudstackaffinitygroups";
    CloudStackMachineStateChecker = "CloudStackMachineStateChecker", "cloudstackmachinestatecheckers";
}

wire! {
    /// The infrastructure of a cluster on CloudStack.
    pub struct CloudStackCluster {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackClusterSpec,
        /// Observed state.
        pub status: CloudStackClusterStatus,
    }

    /// Reference to a network, by id or by name.
    pub struct Network {
        /// Id of the network.
        pub id: String,
        /// Name of the network.
        pub name: String,
        /// Type of the network: `Isolated` or `Shared`.
        #[serde(rename = "type")]
        pub kind: String,
    }

    /// A CloudStack instance that backs a Machine.
    pub struct CloudStackMachine {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineSpec,
        /// Observed state.
        pub status: CloudStackMachineStatus,
    }

    /// A template for CloudStackMachines.
    pub struct CloudStackMachineTemplate {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineTemplateSpec,
    }

    /// An isolated network with a public IP address and a load balancer.
    pub struct CloudStackIsolatedNetwork {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackIsolatedNetworkSpec,
        /// Observed state.
        pub status: CloudStackIsolatedNetworkStatus,
    }

    /// Watches an instance and deletes its Machine when it stops.
    pub struct CloudStackMachineStateChecker {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineStateCheckerSpec,
        /// Observed state.
        pub status: CloudStackMachineStateCheckerStatus,
    }

    /// An affinity or anti-affinity group of instances.
    pub struct CloudStackAffinityGroup {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackAffinityGroupSpec,
        /// Observed state.
        pub status: Ready,
    }

    /// Desired state of a CloudStackAffinityGroup.
    pub struct CloudStackAffinityGroupSpec {
        /// Type of the group: `host affinity` or `host anti-affinity`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Name of the affinity group.
        pub name: String,
        /// Id of the affinity group. Set by the provider.
        pub id: String,
    }
}

record! {
    /// Desired state of a CloudStackCluster.
    pub struct CloudStackClusterSpec {
        required {
            /// Failure domains of the machines.
            pub zones: Vec<Zone>,
            /// Endpoint of the API server.
            pub control_plane_endpoint: Endpoint,
        }
        optional {
            /// Account that owns the resources.
            pub account: String,
            /// Domain of the account.
            pub domain: String,
            /// Reference to the Secret with the credentials.
            pub identity_ref: Option<IdentityReference>,
        }
    }

    /// Reference to a zone, by id or by name, with its network.
    pub struct Zone {
        required {
            /// Network of the machines.
            pub network: Network,
        }
        optional {
            /// Id of the zone.
            pub id: String,
            /// Name of the zone.
            pub name: String,
        }
    }

    /// Reference to an object with credentials.
    pub struct IdentityReference {
        required {
            /// Kind of the object.
            #[schemars(length(min = 1))]
            pub kind: String,
            /// Name of the object.
            pub name: String,
        }
    }

    /// Observed state of a CloudStackCluster.
    pub struct CloudStackClusterStatus {
        required {
            /// Whether all failure domains can be used.
            pub ready: bool,
        }
        optional {
            /// Failure domains that machines can be placed in, by name.
            pub failure_domains: BTreeMap<String, FailureDomainSpec>,
            /// Zones, by id.
            pub zones: BTreeMap<String, Zone>,
            /// Id of the domain.
            #[serde(rename = "domainID")]
            pub domain_id: String,
            /// Id of the public IP address.
            #[serde(rename = "publicIPID")]
            pub public_ip_id: String,
            /// Id of the network of the public IP address.
            #[serde(rename = "publicIPNetworkID")]
            pub public_ip_network_id: String,
            /// Id of the load balancer rule.
            #[serde(rename = "loadBalancerRuleID")]
            pub load_balancer_rule_id: String,
        }
    }

    /// Desired state of a CloudStackMachine.
    pub struct CloudStackMachineSpec {
        required {
            /// Service offering: CPUs and memory.
            pub offering: Identifier,
            /// Template that the instance is created from.
            pub template: Identifier,
        }
        optional {
            /// Not used: instances are named after their object.
            pub name: String,
            /// Not used.
            pub id: String,
            /// Id of the instance. Set by the provider.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// Provider id, equal to that of the Node. Set by the provider.
            #[serde(rename = "providerID")]
            pub provider_id: Option<String>,
            /// Data disk of the instance.
            pub disk_offering: DiskOffering,
            /// Name of an SSH key pair in CloudStack.
            pub ssh_key: String,
            /// Details of the instance, such as `cpuNumber`.
            pub details: BTreeMap<String, String>,
            /// Ids of existing affinity groups that the instance joins.
            #[serde(rename = "affinitygroupids")]
            pub affinity_group_ids: Vec<String>,
            /// `pro` keeps machines of the same owner on one host, `anti` on different hosts; `no` or empty does
            /// neither.
            pub affinity: String,
            /// Reference to the affinity group in use. Set by the provider.
            #[serde(rename = "cloudstackaffinityref")]
            pub cloudstack_affinity_ref: Option<ObjectReference>,
            /// Id of the zone.
            #[serde(rename = "zoneID")]
            pub zone_id: String,
            /// Name of the zone.
            pub zone_name: String,
            /// Reference to the Secret with the credentials.
            pub identity_ref: Option<IdentityReference>,
        }
    }

    /// Observed state of a CloudStackMachine.
    pub struct CloudStackMachineStatus {
        required {
            /// Whether the instance is running.
            pub ready: bool,
        }
        optional {
            /// Id of the zone.
            #[serde(rename = "zoneID")]
            pub zone_id: String,
            /// Addresses of the instance.
            pub addresses: Vec<Address>,
            /// State of the instance in CloudStack.
            pub instance_state: String,
            /// Time when the state of the instance last changed.
            pub instance_state_last_updated: Option<Time>,
        }
    }

    /// A template for CloudStackMachines.
    pub struct CloudStackMachineTemplateSpec {
        required {
            /// Template of the machines.
            pub template: CloudStackMachineTemplateResource,
        }
    }

    /// Template of a CloudStackMachine.
    pub struct CloudStackMachineTemplateResource {
        required {
            /// Desired state.
            pub spec: CloudStackMachineSpec,
        }
        optional {
            /// Labels and annotations of the machines.
            #[schemars(schema_with = "any_object")]
            pub metadata: Map<String, Value>,
        }
    }

    /// Desired state of a CloudStackIsolatedNetwork.
    pub struct CloudStackIsolatedNetworkSpec {
        required {
            /// Endpoint of the API server.
            pub control_plane_endpoint: Endpoint,
        }
        optional {
            /// Name of the network.
            pub name: String,
            /// Id of the network. Set by the provider.
            pub id: String,
        }
    }
}
