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
    /// What CloudStackMachines are made from.
    pub struct CloudStackMachineTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineTemplateSpec,
        /// What was observed.
        pub status: CloudStackMachineTemplateStatus,
    }

    /// Labels and annotations that machines get.
    pub struct MachineMeta {
        /// Labels.
        pub labels: BTreeMap<String, String>,
        /// Annotations.
        pub annotations: BTreeMap<String, String>,
    }

    /// What is known of machines before one is made: who scales from zero needs it.
    pub struct CloudStackMachineTemplateStatus {
        /// Processors, memory and the like, as quantities.
        pub capacity: BTreeMap<String, String>,
        /// What their Nodes will say.
        pub node_info: NodeInfo,
    }

    /// What a Node says about its system.
    #[schemars(extend("minProperties" = 1))]
    pub struct NodeInfo {
        /// `amd64`, `arm64`, ….
        pub architecture: String,
        /// `linux`, ….
        pub operating_system: String,
    }
}

record! {
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
            /// Labels and annotations for the objects made from this.
            pub metadata: MachineMeta,
        }
    }
}
