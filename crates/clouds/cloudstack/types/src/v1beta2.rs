//! `v1beta2` as CAPC had it: failure domains without projects, virtual private clouds and offerings; machines with one
//! network.

use std::collections::BTreeMap;

use capstan_capi_types::core::FailureDomain;
use capstan_capi_types::kubernetes::ObjectReference;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{ObjectMeta, Time, object};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::v1beta3::{
    Address, CloudStackAffinityGroupSpec, CloudStackMachineStateCheckerSpec,
    CloudStackMachineStateCheckerStatus, DiskOffering, Endpoint, Identifier, SecretReference,
};

macro_rules! kinds {
    ($($kind:ident = $name:literal, $plural:literal;)*) => {$(
        object!($kind, "infrastructure.cluster.x-k8s.io" / "v1beta2", $name, $plural, Namespaced);
    )*};
}

kinds! {
    CloudStackCluster = "CloudStackCluster", "cloudstackclusters";
    CloudStackFailureDomain = "CloudStackFailureDomain", "cloudstackfailuredomains";
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

    /// A failure domain, as the contract v1beta1 defines it. Its name is its key.
    pub struct FailureDomainSpec {
        /// Whether control plane machines may be placed there.
        pub control_plane: bool,
        /// Attributes of the failure domain.
        pub attributes: BTreeMap<String, String>,
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
}

record! {
    /// Desired state of a CloudStackCluster.
    pub struct CloudStackClusterSpec {
        required {
            /// Failure domains of the machines.
            pub failure_domains: Vec<CloudStackFailureDomainSpec>,
            /// Endpoint of the API server.
            pub control_plane_endpoint: Endpoint,
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
        }
    }

    /// A zone and a network in it, with the account that uses them.
    pub struct CloudStackFailureDomain {
        required {
            /// Desired state.
            pub spec: CloudStackFailureDomainSpec,
        }
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Observed state.
            pub status: Ready,
        }
    }

    /// Desired state of a CloudStackFailureDomain.
    pub struct CloudStackFailureDomainSpec {
        required {
            /// Name of the failure domain, unique in its cluster.
            pub name: String,
            /// Zone and network of the machines.
            pub zone: Zone,
            /// Secret with the URL and the credentials of the CloudStack API.
            pub acs_endpoint: SecretReference,
        }
        optional {
            /// Account that owns the resources. Defaults to the account of the credentials.
            pub account: String,
            /// Path of the account's domain, with or without `ROOT/`.
            pub domain: String,
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

    /// Reference to a network, by id or by name.
    pub struct Network {
        required {
            /// Name of the network.
            pub name: String,
        }
        optional {
            /// Id of the network.
            pub id: String,
            /// Type of the network: `Isolated` or `Shared`.
            #[serde(rename = "type")]
            pub kind: String,
        }
    }

    /// Observed state.
    pub struct Ready {
        required {
            /// It can be used.
            pub ready: bool,
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
            #[serde(rename = "affinityGroupIDs")]
            pub affinity_group_ids: Vec<String>,
            /// `pro` keeps machines of the same owner on one host, `anti` on different hosts; `no` or empty does
            /// neither.
            pub affinity: String,
            /// Reference to the affinity group in use. Set by the provider.
            pub cloudstack_affinity_ref: Option<ObjectReference>,
            /// Failure domain. Defaults to that of the Machine; otherwise the provider chooses one.
            pub failure_domain_name: String,
            /// Whether user data is sent without compression, as Ignition requires.
            pub uncompressed_user_data: Option<bool>,
        }
    }

    /// Observed state of a CloudStackMachine.
    pub struct CloudStackMachineStatus {
        required {
            /// Whether the instance is running.
            pub ready: bool,
        }
        optional {
            /// Addresses of the instance.
            pub addresses: Vec<Address>,
            /// State of the instance in CloudStack.
            pub instance_state: String,
            /// Time when the state of the instance last changed.
            pub instance_state_last_updated: Option<Time>,
            /// `Success` or `Failure`. Written by CAPC only.
            pub status: Option<String>,
            /// Reason of a failure. Written by CAPC only.
            pub reason: Option<String>,
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
            #[schemars(schema_with = "any_object_or_null")]
            pub metadata: Option<Map<String, Value>>,
        }
    }

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
        }
    }

    /// Observed state of a CloudStackIsolatedNetwork.
    pub struct CloudStackIsolatedNetworkStatus {
        required {
            /// Whether machines can be placed in the network.
            pub ready: bool,
        }
        optional {
            /// Id of the public IP address.
            #[serde(rename = "publicIPID")]
            pub public_ip_id: String,
            /// Id of the load balancer rule.
            #[serde(rename = "loadBalancerRuleID")]
            pub load_balancer_rule_id: String,
        }
    }
}

impl From<FailureDomain> for FailureDomainSpec {
    fn from(domain: FailureDomain) -> Self {
        Self { control_plane: domain.control_plane.unwrap_or_default(), attributes: domain.attributes }
    }
}

/// An object whose fields are unspecified.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The value, or an explicit null.
fn any_object_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "nullable": true })
}
