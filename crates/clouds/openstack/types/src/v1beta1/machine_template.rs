//! `OpenStackMachineTemplate`: what machines are made from.

use std::collections::BTreeMap;

use capstan_capi_types::core::V1Beta1Condition;
use capstan_capi_types::wire::record;
use capstan_object::{ObjectMeta, object};

use super::{NodeInfo, OpenStackMachineSpec};
use crate::common::Quantity;

object!(
    OpenStackMachineTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "OpenStackMachineTemplate",
    "openstackmachinetemplates",
    Namespaced
);

record! {
    /// What OpenStackMachines are made from.
    pub struct OpenStackMachineTemplate {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackMachineTemplateSpec,
            /// Observed state.
            pub status: OpenStackMachineTemplateStatus,
        }
    }

    /// What OpenStackMachines are made from.
    pub struct OpenStackMachineTemplateSpec {
        required {
            /// An object to be.
            pub template: OpenStackMachineTemplateResource,
        }
    }

    /// An OpenStackMachine to be.
    pub struct OpenStackMachineTemplateResource {
        required {
            /// Desired state.
            pub spec: OpenStackMachineSpec,
        }
    }

    /// What is known of machines before one is made: scaling from zero needs it.
    pub struct OpenStackMachineTemplateStatus {
        optional {
            /// Processors, memory and disk, as quantities.
            pub capacity: BTreeMap<String, Quantity>,
            /// What the Node will say about its system.
            pub node_info: NodeInfo,
            /// Observed aspects of the object, one per type.
            pub conditions: Vec<V1Beta1Condition>,
        }
    }
}
