//! `OpenStackMachine`: a server of a cluster.

use capstan_capi_types::kubernetes::TypedLocalObjectReference;
use capstan_capi_types::wire::record;
use capstan_object::{Condition, ObjectMeta, object};

use super::{
    AdditionalBlockDevice, FlavorParam, ImageParam, OpenStackIdentityReference, PortOpts, PortStatus,
    ResolvedPortSpec, RootVolume, SecurityGroupParam, ServerGroupParam,
};
use crate::common::NodeAddress;
use crate::schema::rule;

object!(
    OpenStackMachine,
    "infrastructure.cluster.x-k8s.io" / "v1beta2",
    "OpenStackMachine",
    "openstackmachines",
    Namespaced
);

record! {
    /// A server that backs a Machine.
    pub struct OpenStackMachine {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackMachineSpec,
            /// Observed state.
            pub status: OpenStackMachineStatus,
        }
    }

    /// Desired state of an OpenStackMachine.
    pub struct OpenStackMachineSpec {
        required {
            /// Flavor of the server.
            pub flavor: FlavorParam,
            /// Image of the server.
            pub image: ImageParam,
        }
        optional {
            /// Provider id, equal to that of the Node. Set by the provider.
            #[serde(rename = "providerID")]
            pub provider_id: Option<String>,
            /// Name of a key pair in Nova.
            pub ssh_key_name: String,
            /// Ports of the server.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub ports: Vec<PortOpts>,
            /// Security groups of the server.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub security_groups: Vec<SecurityGroupParam>,
            /// Whether ports are trunks by default.
            pub trunk: bool,
            /// Tags of the server and its ports.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Metadata of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["key"], "x-kubernetes-list-type" = "map"))]
            pub server_metadata: Vec<ServerMetadata>,
            /// Whether user data is on a config drive.
            pub config_drive: Option<bool>,
            /// Volume that the server boots from. Defaults to a disk of the host.
            pub root_volume: Option<RootVolume>,
            /// Additional disks of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub additional_block_devices: Vec<AdditionalBlockDevice>,
            /// Server group of the server.
            pub server_group: Option<ServerGroupParam>,
            /// Reference to the credentials. Defaults to those of the cluster.
            pub identity_ref: Option<OpenStackIdentityReference>,
            /// Pool that the floating IP of the server is claimed from.
            #[serde(rename = "floatingIPPoolRef")]
            pub floating_ip_pool_ref: Option<TypedLocalObjectReference>,
            /// Scheduler hints for Nova.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub scheduler_hint_additional_properties: Vec<SchedulerHintAdditionalProperty>,
        }
    }

    /// A metadata entry of a server.
    pub struct ServerMetadata {
        required {
            /// Key of the entry.
            #[schemars(extend("maxLength" = 255, "minLength" = 1))]
            pub key: String,
            /// Value of the entry.
            #[schemars(extend("maxLength" = 255, "minLength" = 1))]
            pub value: String,
        }
    }

    /// A scheduler hint of Nova.
    pub struct SchedulerHintAdditionalProperty {
        required {
            /// Name of the hint.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Value of the hint.
            pub value: SchedulerHintAdditionalValue,
        }
    }

    /// Value of a scheduler hint.
    #[schemars(extend("x-kubernetes-validations" = [rule("has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)", "bool is required when type is Bool, and forbidden otherwise"), rule("has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)", "number is required when type is Number, and forbidden otherwise"), rule("has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)", "string is required when type is String, and forbidden otherwise")]))]
    pub struct SchedulerHintAdditionalValue {
        required {
            /// Type of the value: `Bool`, `String` or `Number`.
            #[serde(rename = "type")]
            #[schemars(extend("enum" = ["Bool", "String", "Number"]))]
            pub kind: String,
        }
        optional {
            /// Value, if the type is `Bool`.
            pub bool: Option<bool>,
            /// Value, if the type is `Number`.
            pub number: Option<i32>,
            /// Value, if the type is `String`.
            #[schemars(extend("maxLength" = 255, "minLength" = 1))]
            pub string: Option<String>,
        }
    }

    /// Provisioning progress of a machine, as the Cluster API contract defines it.
    pub struct MachineInitialization {
        optional {
            /// Whether the infrastructure is provisioned. Stays true once it is.
            pub provisioned: bool,
        }
    }

    /// Observed state of an OpenStackMachine.
    pub struct OpenStackMachineStatus {
        optional {
            /// Conditions of the object, one per type.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
            pub conditions: Vec<Condition>,
            /// Provisioning progress, as the Cluster API contract defines it.
            pub initialization: Option<MachineInitialization>,
            /// Id of the server in Nova.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// Addresses of the server.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub addresses: Vec<NodeAddress>,
            /// State of the server in Nova.
            pub instance_state: Option<String>,
            /// Ids of the resources that the references resolved to.
            pub resolved: Option<ResolvedMachineSpec>,
            /// Resources that were created for the server.
            pub resources: Option<MachineResources>,
        }
    }

    /// Ids of the resources that the references of a machine resolved to.
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
            /// Ports with resolved references.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub ports: Vec<ResolvedPortSpec>,
        }
    }

    /// Resources that were created for a machine.
    pub struct MachineResources {
        optional {
            /// Ports of the server.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub ports: Vec<PortStatus>,
        }
    }
}
