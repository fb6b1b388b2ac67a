//! `CloudStackMachine`: a virtual machine.

use std::collections::BTreeMap;

use capstan_capi_types::kubernetes::ObjectReference;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, ObjectMeta, Time, object};

use super::common::{Address, Identifier, Initialization};

object!(
    CloudStackMachine,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackMachine",
    "cloudstackmachines",
    Namespaced
);

wire! {
    /// A virtual machine of a cluster on CloudStack.
    pub struct CloudStackMachine {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineSpec,
        /// What was observed.
        pub status: CloudStackMachineStatus,
    }
}

record! {
    /// What is wanted of a machine.
    pub struct CloudStackMachineSpec {
        required {
            /// Service offering: processors and memory.
            pub offering: Identifier,
            /// Template it is made from.
            pub template: Identifier,
        }
        optional {
            /// Not used: the machine is called like its object.
            pub name: String,
            /// Not used.
            pub id: String,
            /// Id of the machine in CloudStack; filled in.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// Identity of the machine, equal to that of its Node; filled in.
            #[serde(rename = "providerID")]
            pub provider_id: Option<String>,
            /// A data disk.
            pub disk_offering: DiskOffering,
            /// Networks, the failure domain's first; that one alone if empty.
            pub networks: Vec<MachineNetwork>,
            /// Name of an SSH key in CloudStack.
            pub ssh_key: String,
            /// Settings of the machine, such as `cpuNumber`.
            pub details: BTreeMap<String, String>,
            /// Affinity groups that exist.
            #[serde(rename = "affinityGroupIDs")]
            pub affinity_group_ids: Vec<String>,
            /// `pro` keeps machines of the same owner on one host, `anti` apart; `no` or empty does neither.
            pub affinity: String,
            /// The affinity group in use; filled in.
            pub cloudstack_affinity_ref: Option<ObjectReference>,
            /// Failure domain. Empty means that of the Machine, or one that is chosen; filled in.
            pub failure_domain_name: String,
            /// Boot data as it is, for Ignition; compressed otherwise.
            pub uncompressed_user_data: Option<bool>,
        }
    }

    /// A data disk.
    pub struct DiskOffering {
        required {
            /// Where boot data mounts it.
            pub mount_path: String,
            /// Its device.
            pub device: String,
            /// Its file system.
            pub filesystem: String,
            /// Label of the file system.
            pub label: String,
        }
        optional {
            /// Id of the offering.
            pub id: String,
            /// Name of the offering.
            pub name: String,
            /// Gigabytes, if the offering leaves that open.
            #[serde(rename = "customSizeInGB")]
            pub custom_size_in_gb: i64,
        }
    }

    /// A network of a machine.
    pub struct MachineNetwork {
        required {
            /// Its name.
            pub name: String,
        }
        optional {
            /// Its id.
            pub id: String,
            /// Address that the machine shall have there.
            pub ip: String,
        }
    }

    /// What was observed of a machine.
    pub struct CloudStackMachineStatus {
        required {
            /// The machine runs; for those who follow the contract v1beta1.
            pub ready: bool,
        }
        optional {
            /// Observed aspects of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Milestones on the way to being usable; contract with the core.
            pub initialization: Initialization,
            /// Failure domain the machine was placed in; contract with the core.
            pub failure_domain: String,
            /// Addresses of the machine.
            pub addresses: Vec<Address>,
            /// State of the machine in CloudStack.
            pub instance_state: String,
            /// When that state was seen first.
            pub instance_state_last_updated: Option<Time>,
            /// `Success` or `Failure`; what CAPC left there.
            pub status: Option<String>,
            /// Why it failed; what CAPC left there.
            pub reason: Option<String>,
        }
    }
}
