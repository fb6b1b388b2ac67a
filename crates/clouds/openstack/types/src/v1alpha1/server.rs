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
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackServerSpec,
            /// Observed state.
            pub status: OpenStackServerStatus,
        }
    }

    /// Desired state of a server.
    #[schemars(extend("x-kubernetes-validations" = [rule("(has(self.flavor) || has(self.flavorID))", "at least one of flavor or flavorID must be set")]))]
    pub struct OpenStackServerSpec {
        required {
            /// Where the credentials are.
            pub identity_ref: OpenStackIdentityReference,
            /// The image.
            pub image: ImageParam,
            /// The ports.
            pub ports: Vec<PortOpts>,
            /// Name of an SSH key in Nova.
            pub ssh_key_name: String,
        }
        optional {
            /// Disks beside the root disk.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub additional_block_devices: Vec<AdditionalBlockDevice>,
            /// The availability zone.
            pub availability_zone: Option<String>,
            /// User data is on a drive.
            pub config_drive: Option<bool>,
            /// Name of the flavor.
            #[schemars(extend("minLength" = 1))]
            pub flavor: Option<String>,
            /// Id of the flavor.
            #[serde(rename = "flavorID")]
            #[schemars(extend("minLength" = 1))]
            pub flavor_id: Option<String>,
            /// Pool that a floating IP is claimed from.
            #[serde(rename = "floatingIPPoolRef")]
            pub floating_ip_pool_ref: Option<TypedLocalObjectReference>,
            /// Boot from a volume instead of a disk of the host.
            pub root_volume: Option<RootVolume>,
            /// Its security groups.
            pub security_groups: Vec<SecurityGroupParam>,
            /// The server group.
            pub server_group: Option<ServerGroupParam>,
            /// Keys and values of the server.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["key"], "x-kubernetes-list-type" = "map"))]
            pub server_metadata: Vec<ServerMetadata>,
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Ports are trunks.
            pub trunk: Option<bool>,
            /// Secret with the user data, under the key `value`.
            pub user_data_ref: Option<LocalObjectReference>,
            /// Hints for the cloud's scheduler.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub scheduler_hint_additional_properties: Vec<SchedulerHintAdditionalProperty>,
        }
    }

    /// Observed state of a server.
    pub struct OpenStackServerStatus {
        required {
            /// Usable; for those who follow the contract v1beta1.
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
            /// Ids that filters resolved to.
            pub resolved: Option<ResolvedServerSpec>,
            /// What was created for it.
            pub resources: Option<ServerResources>,
            /// Observed aspects of the object, one per type.
            pub conditions: Vec<Condition>,
        }
    }

    /// Ids that filters of a server resolved to.
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
            /// The ports.
            pub ports: Vec<ResolvedPortSpec>,
        }
    }

    /// What was created for a server.
    pub struct ServerResources {
        optional {
            /// The ports.
            pub ports: Vec<PortStatus>,
        }
    }
}
