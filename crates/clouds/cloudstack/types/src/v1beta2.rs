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
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackClusterSpec,
        /// What was observed.
        pub status: CloudStackClusterStatus,
    }

    /// A failure domain in the words of the contract v1beta1; its name is its key.
    pub struct FailureDomainSpec {
        /// Whether control plane machines may be placed there.
        pub control_plane: bool,
        /// What the infrastructure says about it.
        pub attributes: BTreeMap<String, String>,
    }

    /// A virtual machine of a cluster on CloudStack.
    pub struct CloudStackMachine {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineSpec,
        /// What was observed.
        pub status: CloudStackMachineStatus,
    }

    /// What CloudStackMachines are made from.
    pub struct CloudStackMachineTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineTemplateSpec,
    }

    /// A network of one's own, with a public address and a load balancer.
    pub struct CloudStackIsolatedNetwork {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackIsolatedNetworkSpec,
        /// What was observed.
        pub status: CloudStackIsolatedNetworkStatus,
    }

    /// A machine whose Machine is deleted when it stops.
    pub struct CloudStackMachineStateChecker {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineStateCheckerSpec,
        /// What was observed.
        pub status: CloudStackMachineStateCheckerStatus,
    }

    /// Machines that are kept together or apart.
    pub struct CloudStackAffinityGroup {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackAffinityGroupSpec,
        /// What was observed.
        pub status: Ready,
    }
}

record! {
    /// What is wanted of a cluster's infrastructure.
    pub struct CloudStackClusterSpec {
        required {
            /// Where machines may live.
            pub failure_domains: Vec<CloudStackFailureDomainSpec>,
            /// Where the API server is reached.
            pub control_plane_endpoint: Endpoint,
        }
    }

    /// What was observed of a cluster's infrastructure.
    pub struct CloudStackClusterStatus {
        required {
            /// All failure domains can be used.
            pub ready: bool,
        }
        optional {
            /// Failure domains that machines can be placed in, by name.
            pub failure_domains: BTreeMap<String, FailureDomainSpec>,
        }
    }

    /// A zone and a network in it, as somebody's account sees them.
    pub struct CloudStackFailureDomain {
        required {
            /// What is wanted.
            pub spec: CloudStackFailureDomainSpec,
        }
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// What was observed.
            pub status: Ready,
        }
    }

    /// Where machines may live.
    pub struct CloudStackFailureDomainSpec {
        required {
            /// Name of the failure domain, unique in its cluster.
            pub name: String,
            /// Zone and network.
            pub zone: Zone,
            /// Secret with URL and keys of the CloudStack API.
            pub acs_endpoint: SecretReference,
        }
        optional {
            /// Account to act for, if not that of the keys.
            pub account: String,
            /// Path of that account's domain, with or without `ROOT/`.
            pub domain: String,
        }
    }

    /// A zone, by id or by name.
    pub struct Zone {
        required {
            /// The network of machines.
            pub network: Network,
        }
        optional {
            /// Its id.
            pub id: String,
            /// Its name.
            pub name: String,
        }
    }

    /// A network, by id or by name.
    pub struct Network {
        required {
            /// Its name.
            pub name: String,
        }
        optional {
            /// Its id.
            pub id: String,
            /// `Isolated` or `Shared`.
            #[serde(rename = "type")]
            pub kind: String,
        }
    }

    /// What was observed: only whether it can be used.
    pub struct Ready {
        required {
            /// It can be used.
            pub ready: bool,
        }
    }

    /// What is wanted of a machine.
    pub struct CloudStackMachineSpec {
        required {
            /// Service offering: processors and memory.
            pub offering: Identifier,
            /// Template it is made from.
            pub template: Identifier,
        }
        optional {
            /// Not used.
            pub name: String,
            /// Not used.
            pub id: String,
            /// Id of the machine in CloudStack.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// Identity of the machine, equal to that of its Node.
            #[serde(rename = "providerID")]
            pub provider_id: Option<String>,
            /// A data disk.
            pub disk_offering: DiskOffering,
            /// Name of an SSH key in CloudStack.
            pub ssh_key: String,
            /// Settings of the machine.
            pub details: BTreeMap<String, String>,
            /// Affinity groups that exist.
            #[serde(rename = "affinityGroupIDs")]
            pub affinity_group_ids: Vec<String>,
            /// `pro`, `anti`, `no` or empty.
            pub affinity: String,
            /// The affinity group in use.
            pub cloudstack_affinity_ref: Option<ObjectReference>,
            /// Failure domain. Empty means that of the Machine, or one that is chosen; filled in.
            pub failure_domain_name: String,
            /// Boot data as it is.
            pub uncompressed_user_data: Option<bool>,
        }
    }

    /// What was observed of a machine.
    pub struct CloudStackMachineStatus {
        required {
            /// The machine runs.
            pub ready: bool,
        }
        optional {
            /// Addresses of the machine.
            pub addresses: Vec<Address>,
            /// State of the machine in CloudStack.
            pub instance_state: String,
            /// When that state was seen first.
            pub instance_state_last_updated: Option<Time>,
            /// `Success` or `Failure`.
            pub status: Option<String>,
            /// Why it failed.
            pub reason: Option<String>,
        }
    }

    /// What CloudStackMachines are made from.
    pub struct CloudStackMachineTemplateSpec {
        required {
            /// A machine to be.
            pub template: CloudStackMachineTemplateResource,
        }
    }

    /// A CloudStackMachine to be.
    pub struct CloudStackMachineTemplateResource {
        required {
            /// What is wanted.
            pub spec: CloudStackMachineSpec,
        }
        optional {
            /// Metadata of the objects made from this.
            #[schemars(schema_with = "any_object_or_null")]
            pub metadata: Option<Map<String, Value>>,
        }
    }

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
            /// Its id in CloudStack.
            pub id: String,
        }
    }

    /// What was observed of a network.
    pub struct CloudStackIsolatedNetworkStatus {
        required {
            /// Machines can be put there.
            pub ready: bool,
        }
        optional {
            /// Id of the public address.
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

/// An object with fields that nobody says.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The same, or nothing in so many words.
fn any_object_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "nullable": true })
}
