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
    /// A CloudStack instance that backs a Machine.
    pub struct CloudStackMachine {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineSpec,
        /// Observed state.
        pub status: CloudStackMachineStatus,
    }
}

record! {
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
            /// Networks of the instance; the first must be the failure domain's. Defaults to that network alone.
            pub networks: Vec<MachineNetwork>,
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

    /// A data disk.
    pub struct DiskOffering {
        required {
            /// Path where boot data mounts the disk.
            pub mount_path: String,
            /// Device of the disk.
            pub device: String,
            /// File system of the disk.
            pub filesystem: String,
            /// Label of the file system.
            pub label: String,
        }
        optional {
            /// Id of the disk offering.
            pub id: String,
            /// Name of the disk offering.
            pub name: String,
            /// Size in gigabytes, for disk offerings of custom size.
            #[serde(rename = "customSizeInGB")]
            pub custom_size_in_gb: i64,
        }
    }

    /// A network of a machine.
    pub struct MachineNetwork {
        required {
            /// Name of the network.
            pub name: String,
        }
        optional {
            /// Id of the network.
            pub id: String,
            /// Static IP address in the network.
            pub ip: String,
        }
    }

    /// Observed state of a CloudStackMachine.
    pub struct CloudStackMachineStatus {
        required {
            /// Whether the instance is running; part of the contract v1beta1.
            pub ready: bool,
        }
        optional {
            /// Conditions of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Provisioning progress, as the Cluster API contract defines it.
            pub initialization: Initialization,
            /// Failure domain that the machine was placed in.
            pub failure_domain: String,
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
}
