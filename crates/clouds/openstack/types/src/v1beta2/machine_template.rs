//! `OpenStackMachineTemplate`: what machines are made from.

use std::collections::BTreeMap;

use capstan_capi_types::wire::record;
use capstan_object::{Condition, ObjectMeta, object};

use super::OpenStackMachineSpec;
use crate::common::Quantity;

object!(
    OpenStackMachineTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta2",
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
            /// Observed aspects of the object, one per type.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
            pub conditions: Vec<Condition>,
            /// Processors, memory and disk, as quantities.
            pub capacity: BTreeMap<String, Quantity>,
            /// What the Node will say about its system.
            pub node_info: NodeInfo,
        }
    }

    /// What a Node says about its system.
    #[schemars(extend("minProperties" = 1))]
    pub struct NodeInfo {
        optional {
            /// `linux`, ….
            pub operating_system: String,
        }
    }
}
