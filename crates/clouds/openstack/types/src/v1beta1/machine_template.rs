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
    /// A template for OpenStackMachines.
    pub struct OpenStackMachineTemplate {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackMachineTemplateSpec,
            /// Observed state.
            pub status: OpenStackMachineTemplateStatus,
        }
    }

    /// Desired state of an OpenStackMachineTemplate.
    pub struct OpenStackMachineTemplateSpec {
        required {
            /// Template of the machines.
            pub template: OpenStackMachineTemplateResource,
        }
    }

    /// Template of an OpenStackMachine.
    pub struct OpenStackMachineTemplateResource {
        required {
            /// Desired state of the machines.
            pub spec: OpenStackMachineSpec,
        }
    }

    /// Observed state of an OpenStackMachineTemplate.
    pub struct OpenStackMachineTemplateStatus {
        optional {
            /// Resources of a machine, such as `cpu` and `memory`, for autoscalers that scale from zero.
            pub capacity: BTreeMap<String, Quantity>,
            /// Operating system of the Nodes.
            pub node_info: NodeInfo,
            /// Conditions of the object, one per type.
            pub conditions: Vec<V1Beta1Condition>,
        }
    }
}
