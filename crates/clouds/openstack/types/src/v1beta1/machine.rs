//! `OpenStackMachine`: a server of a cluster.

use capstan_capi_types::core::V1Beta1Condition;
use capstan_capi_types::kubernetes::TypedLocalObjectReference;
use capstan_capi_types::wire::record;
use capstan_object::{ObjectMeta, object};

use super::{
    AdditionalBlockDevice, ImageParam, MachineInitialization, OpenStackIdentityReference, PortOpts,
    PortStatus, ResolvedPortSpec, RootVolume, SecurityGroupParam, ServerGroupParam,
};
use crate::common::NodeAddress;
use crate::schema::rule;

object!(
    OpenStackMachine,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "OpenStackMachine",
    "openstackmachines",
    Namespaced
);

record! {
    /// A server of a cluster on OpenStack.
    pub struct OpenStackMachine {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackMachineSpec,
            /// Observed state.
            pub status: OpenStackMachineStatus,
        }
    }

    /// Desired state of a server.
    #[schemars(extend("x-kubernetes-validations" = [rule("(has(self.flavor) || has(self.flavorID))", "at least one of flavor or flavorID must be set")]))]
    pub struct OpenStackMachineSpec {
        required {
            /// The image.
            pub image: ImageParam,
        }
        optional {
            /// Identity of the server, equal to that of its Node; filled in.
            #[serde(rename = "providerID")]
            pub provider_id: Option<String>,
            /// The flavor.
            #[schemars(extend("minLength" = 1))]
            pub flavor: Option<String>,
            /// Id of the flavor.
            #[serde(rename = "flavorID")]
            #[schemars(extend("minLength" = 1))]
            pub flavor_id: Option<String>,
            /// Name of an SSH key in Nova.
            pub ssh_key_name: String,
            /// The ports.
            pub ports: Vec<PortOpts>,
            /// Its security groups.
            pub security_groups: Vec<SecurityGroupParam>,
            /// Ports are trunks.
            pub trunk: bool,
            /// Tags of the server and its ports.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Keys and values of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["key"], "x-kubernetes-list-type" = "map"))]
            pub server_metadata: Vec<ServerMetadata>,
            /// User data is on a drive.
            pub config_drive: Option<bool>,
            /// Boot from a volume instead of a disk of the host.
            pub root_volume: Option<RootVolume>,
            /// Disks beside the root disk.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub additional_block_devices: Vec<AdditionalBlockDevice>,
            /// The server group.
            pub server_group: Option<ServerGroupParam>,
            /// Where the credentials are.
            pub identity_ref: Option<OpenStackIdentityReference>,
            /// Pool that a floating IP is claimed from.
            #[serde(rename = "floatingIPPoolRef")]
            pub floating_ip_pool_ref: Option<TypedLocalObjectReference>,
            /// Hints for the cloud's scheduler.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub scheduler_hint_additional_properties: Vec<SchedulerHintAdditionalProperty>,
        }
    }

    /// A key and a value of a server.
    pub struct ServerMetadata {
        required {
            /// The key.
            #[schemars(extend("maxLength" = 255))]
            pub key: String,
            /// The value.
            #[schemars(extend("maxLength" = 255))]
            pub value: String,
        }
    }

    /// A hint for the cloud's scheduler.
    pub struct SchedulerHintAdditionalProperty {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// The value.
            pub value: SchedulerHintAdditionalValue,
        }
    }

    /// A value of a scheduler hint.
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)", "bool is required when type is Bool, and forbidden otherwise"), rule("has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)", "number is required when type is Number, and forbidden otherwise"), rule("has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)", "string is required when type is String, and forbidden otherwise")]))]
    pub struct SchedulerHintAdditionalValue {
        required {
            /// `Bool`, `String` or `Number`.
            #[serde(rename = "type")]
            #[schemars(extend("enum" = ["Bool", "String", "Number"]))]
            pub kind: String,
        }
        optional {
            /// The value of type `Bool`.
            pub bool: Option<bool>,
            /// The value of type `Number`.
            #[schemars(schema_with = "crate::schema::integer")]
            pub number: Option<i64>,
            /// The value of type `String`.
            #[schemars(extend("maxLength" = 255, "minLength" = 1))]
            pub string: Option<String>,
        }
    }

    /// Observed state of a server.
    pub struct OpenStackMachineStatus {
        optional {
            /// Usable; for those who follow the contract v1beta1.
            pub ready: bool,
            /// Milestones; contract with the core.
            pub initialization: Option<MachineInitialization>,
            /// Id of the server in Nova.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// Addresses of the server.
            pub addresses: Vec<NodeAddress>,
            /// State of the server in Nova.
            pub instance_state: Option<String>,
            /// Ids that filters resolved to.
            pub resolved: Option<ResolvedMachineSpec>,
            /// What was created for it.
            pub resources: Option<MachineResources>,
            /// Why it failed for good; what earlier versions left there.
            pub failure_reason: Option<String>,
            /// The same for people.
            pub failure_message: Option<String>,
            /// Observed aspects of the object, one per type.
            pub conditions: Vec<V1Beta1Condition>,
        }
    }

    /// Ids that filters of a machine resolved to.
    pub struct ResolvedMachineSpec {
        optional {
            /// Id of the server group.
            #[serde(rename = "serverGroupID")]
            pub server_group_id: String,
            /// Id of the image.
            #[serde(rename = "imageID")]
            pub image_id: String,
            /// Id of the flavor.
            #[serde(rename = "flavorID")]
            pub flavor_id: String,
            /// The ports.
            pub ports: Vec<ResolvedPortSpec>,
        }
    }

    /// What was created for a machine.
    pub struct MachineResources {
        optional {
            /// The ports.
            pub ports: Vec<PortStatus>,
        }
    }
}
