//! `CloudStackMachineTemplate`: what machines are made from.

use std::collections::BTreeMap;

use capstan_capi_types::wire::{record, wire};
use capstan_object::{ObjectMeta, object};

use super::machine::CloudStackMachineSpec;

object!(
    CloudStackMachineTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackMachineTemplate",
    "cloudstackmachinetemplates",
    Namespaced
);

wire! {
    /// A template for CloudStackMachines.
    pub struct CloudStackMachineTemplate {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineTemplateSpec,
        /// Observed state.
        pub status: CloudStackMachineTemplateStatus,
    }

    /// Labels and annotations of the machines.
    pub struct MachineMeta {
        /// Labels of the machines.
        pub labels: BTreeMap<String, String>,
        /// Annotations of the machines.
        pub annotations: BTreeMap<String, String>,
    }

    /// Capacity of the machines, for autoscalers that scale from zero.
    pub struct CloudStackMachineTemplateStatus {
        /// Resources of a machine, such as `cpu` and `memory`, as quantities.
        pub capacity: BTreeMap<String, String>,
        /// Operating system and architecture of the Nodes.
        pub node_info: NodeInfo,
    }

    /// Operating system and architecture of a Node.
    #[schemars(extend("minProperties" = 1))]
    pub struct NodeInfo {
        /// Architecture, such as `amd64` or `arm64`.
        pub architecture: String,
        /// Operating system, such as `linux`.
        pub operating_system: String,
    }
}

record! {
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
            pub metadata: MachineMeta,
        }
    }
}
