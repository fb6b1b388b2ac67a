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
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackClusterSpec,
        /// What was observed.
        pub status: CloudStackClusterStatus,
    }

    /// A network, by id or by name.
    pub struct Network {
        /// Its id.
        pub id: String,
        /// Its name.
        pub name: String,
        /// `Isolated` or `Shared`.
        #[serde(rename = "type")]
        pub kind: String,
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

    /// What is wanted of an affinity group.
    pub struct CloudStackAffinityGroupSpec {
        /// `host affinity` or `host anti-affinity`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Its name in CloudStack.
        pub name: String,
        /// Its id in CloudStack.
        pub id: String,
    }
}

record! {
    /// What is wanted of a cluster's infrastructure.
    pub struct CloudStackClusterSpec {
        required {
            /// Where machines may live.
            pub zones: Vec<Zone>,
            /// Where the API server is reached.
            pub control_plane_endpoint: Endpoint,
        }
        optional {
            /// Account to act for.
            pub account: String,
            /// Domain of that account.
            pub domain: String,
            /// Where the keys are.
            pub identity_ref: Option<IdentityReference>,
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

    /// Names an object with keys.
    pub struct IdentityReference {
        required {
            /// Its kind.
            #[schemars(length(min = 1))]
            pub kind: String,
            /// Its name.
            pub name: String,
        }
    }

    /// What was observed of a cluster's infrastructure.
    pub struct CloudStackClusterStatus {
        required {
            /// The infrastructure can be used.
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
            /// Id of the public address.
            #[serde(rename = "publicIPID")]
            pub public_ip_id: String,
            /// Id of the network that the public address serves.
            #[serde(rename = "publicIPNetworkID")]
            pub public_ip_network_id: String,
            /// Id of the load balancer rule.
            #[serde(rename = "loadBalancerRuleID")]
            pub load_balancer_rule_id: String,
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
            #[serde(rename = "affinitygroupids")]
            pub affinity_group_ids: Vec<String>,
            /// `pro`, `anti`, `no` or empty.
            pub affinity: String,
            /// The affinity group in use.
            #[serde(rename = "cloudstackaffinityref")]
            pub cloudstack_affinity_ref: Option<ObjectReference>,
            /// Zone, by id.
            #[serde(rename = "zoneID")]
            pub zone_id: String,
            /// Zone, by name.
            pub zone_name: String,
            /// Where the keys are.
            pub identity_ref: Option<IdentityReference>,
        }
    }

    /// What was observed of a machine.
    pub struct CloudStackMachineStatus {
        required {
            /// The machine runs.
            pub ready: bool,
        }
        optional {
            /// Zone, by id.
            #[serde(rename = "zoneID")]
            pub zone_id: String,
            /// Addresses of the machine.
            pub addresses: Vec<Address>,
            /// State of the machine in CloudStack.
            pub instance_state: String,
            /// When that state was seen first.
            pub instance_state_last_updated: Option<Time>,
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
            #[schemars(schema_with = "any_object")]
            pub metadata: Map<String, Value>,
        }
    }

    /// What is wanted of a network.
    pub struct CloudStackIsolatedNetworkSpec {
        required {
            /// Where the API server is reached.
            pub control_plane_endpoint: Endpoint,
        }
        optional {
            /// Its name in CloudStack.
            pub name: String,
            /// Its id in CloudStack.
            pub id: String,
        }
    }
}
