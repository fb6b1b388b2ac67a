//! `OpenStackServer`: what really owns a server, its ports and its volumes.

use capstan_capi_types::kubernetes::{LocalObjectReference, TypedLocalObjectReference};
use capstan_capi_types::wire::record;
use capstan_object::{Condition, ObjectMeta, object};

use crate::common::NodeAddress;
use crate::schema::rule;
// Ports are those of v1beta1, as in CAPO 0.14: `disablePortSecurity`, not `enablePortSecurity`.
use crate::v1beta1::{PortOpts, PortStatus, ResolvedPortSpec};
use crate::v1beta2::{
    AdditionalBlockDevice, ImageParam, OpenStackIdentityReference, RootVolume,
    SchedulerHintAdditionalProperty, SecurityGroupParam, ServerGroupParam, ServerMetadata,
};

object!(
    OpenStackServer,
    "infrastructure.cluster.x-k8s.io" / "v1alpha1",
    "OpenStackServer",
    "openstackservers",
    Namespaced
);

record! {
    /// A server with its ports and volumes.
    pub struct OpenStackServer {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackServerSpec,
            /// Observed state.
            pub status: OpenStackServerStatus,
        }
    }

    /// Desired state of an OpenStackServer.
    #[schemars(extend("x-kubernetes-validations" = [rule("(has(self.flavor) || has(self.flavorID))", "at least one of flavor or flavorID must be set")]))]
    pub struct OpenStackServerSpec {
        required {
            /// Reference to the credentials of the cloud.
            pub identity_ref: OpenStackIdentityReference,
            /// Image of the server.
            pub image: ImageParam,
            /// Ports of the server.
            pub ports: Vec<PortOpts>,
            /// Name of a key pair in Nova.
            pub ssh_key_name: String,
        }
        optional {
            /// Additional disks of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub additional_block_devices: Vec<AdditionalBlockDevice>,
            /// Availability zone of the server.
            pub availability_zone: Option<String>,
            /// Whether user data is on a config drive.
            pub config_drive: Option<bool>,
            /// Name of the flavor.
            #[schemars(extend("minLength" = 1))]
            pub flavor: Option<String>,
            /// Id of the flavor.
            #[serde(rename = "flavorID")]
            #[schemars(extend("minLength" = 1))]
            pub flavor_id: Option<String>,
            /// Pool that the floating IP of the server is claimed from.
            #[serde(rename = "floatingIPPoolRef")]
            pub floating_ip_pool_ref: Option<TypedLocalObjectReference>,
            /// Volume that the server boots from. Defaults to a disk of the host.
            pub root_volume: Option<RootVolume>,
            /// Security groups of the server.
            pub security_groups: Vec<SecurityGroupParam>,
            /// Server group of the server.
            pub server_group: Option<ServerGroupParam>,
            /// Metadata of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["key"], "x-kubernetes-list-type" = "map"))]
            pub server_metadata: Vec<ServerMetadata>,
            /// Tags of the server.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Whether ports are trunks by default.
            pub trunk: Option<bool>,
            /// Reference to the Secret with the user data, under the key `value`.
            pub user_data_ref: Option<LocalObjectReference>,
            /// Scheduler hints for Nova.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub scheduler_hint_additional_properties: Vec<SchedulerHintAdditionalProperty>,
        }
    }

    /// Observed state of an OpenStackServer.
    pub struct OpenStackServerStatus {
        required {
            /// Whether the infrastructure is ready; part of the contract v1beta1.
            #[schemars(extend("x-default" = false))]
            pub ready: bool,
        }
        optional {
            /// Id of the server in Nova.
            #[serde(rename = "instanceID")]
            pub instance_id: Option<String>,
            /// State of the server in Nova.
            pub instance_state: Option<String>,
            /// Addresses of the server.
            pub addresses: Vec<NodeAddress>,
            /// Ids of the resources that the references resolved to.
            pub resolved: Option<ResolvedServerSpec>,
            /// Resources that were created for the server.
            pub resources: Option<ServerResources>,
            /// Conditions of the object, one per type.
            pub conditions: Vec<Condition>,
        }
    }

    /// Ids of the resources that the references of a server resolved to.
    pub struct ResolvedServerSpec {
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
            pub ports: Vec<ResolvedPortSpec>,
        }
    }

    /// Resources that were created for a server.
    pub struct ServerResources {
        optional {
            /// Ports of the server.
            pub ports: Vec<PortStatus>,
        }
    }
}
