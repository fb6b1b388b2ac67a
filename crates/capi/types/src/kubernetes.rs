//! Parts of Kubernetes' own kinds that Cluster API's kinds contain.

use capstan_object::{IntOrString, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::wire;

wire! {
    /// A taint of a node.
    pub struct Taint {
        /// Key of the taint.
        #[schemars(extend("x-required" = true))]
        pub key: String,
        /// Value of the taint.
        pub value: String,
        /// Effect on pods that do not tolerate the taint.
        #[schemars(extend("x-required" = true))]
        pub effect: String,
        /// When the taint was added.
        pub time_added: Option<Time>,
    }

    /// Names an object of any kind.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct ObjectReference {
        /// Kind of the object.
        pub kind: String,
        /// Namespace of the object.
        pub namespace: String,
        /// Name of the object.
        pub name: String,
        /// Identity of the object.
        pub uid: String,
        /// Group and version of the object.
        pub api_version: String,
        /// Version of the stored object.
        pub resource_version: String,
        /// Part of the object.
        pub field_path: String,
    }

    /// Names an object in the same namespace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct LocalObjectReference {
        /// Name of the object.
        #[schemars(extend("x-default" = ""))]
        pub name: String,
    }

    /// Names an object of any kind in the same namespace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct TypedLocalObjectReference {
        /// API group of the object.
        pub api_group: String,
        /// Kind of the object.
        #[schemars(extend("x-required" = true))]
        pub kind: String,
        /// Name of the object.
        #[schemars(extend("x-required" = true))]
        pub name: String,
    }

    /// An environment variable.
    pub struct EnvVar {
        /// Name of the variable.
        #[schemars(extend("x-required" = true))]
        pub name: String,
        /// Value; `$(OTHER)` stands for another variable.
        pub value: String,
        /// Source of the value.
        pub value_from: Option<EnvVarSource>,
    }

    /// Source of the value of an environment variable.
    pub struct EnvVarSource {
        /// A field of the pod.
        pub field_ref: Option<ObjectFieldSelector>,
        /// A resource of a container.
        pub resource_field_ref: Option<ResourceFieldSelector>,
        /// A key of a ConfigMap.
        pub config_map_key_ref: Option<KeySelector>,
        /// A key of a Secret.
        pub secret_key_ref: Option<KeySelector>,
        /// A key of a file with environment variables.
        pub file_key_ref: Option<FileKeySelector>,
    }

    /// A field of an object.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct ObjectFieldSelector {
        /// Version in which the path is written; `v1` if absent.
        pub api_version: String,
        /// Path of the field.
        #[schemars(extend("x-required" = true))]
        pub field_path: String,
    }

    /// A resource of a container.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct ResourceFieldSelector {
        /// Name of the container.
        pub container_name: String,
        /// The resource, such as `limits.memory`.
        #[schemars(extend("x-required" = true))]
        pub resource: String,
        /// Unit the value is given in.
        #[schemars(extend("pattern" = QUANTITY))]
        pub divisor: Option<IntOrString>,
    }

    /// A key of a ConfigMap or Secret in the same namespace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct KeySelector {
        /// Name of the ConfigMap or Secret.
        #[schemars(extend("x-default" = ""))]
        pub name: String,
        /// Key in the Secret.
        #[schemars(extend("x-required" = true))]
        pub key: String,
        /// Whether it may be missing.
        pub optional: Option<bool>,
    }

    /// A key of a file with environment variables.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct FileKeySelector {
        /// Volume the file is in.
        #[schemars(extend("x-required" = true))]
        pub volume_name: String,
        /// Path of the file in the volume.
        #[schemars(extend("x-required" = true))]
        pub path: String,
        /// Key in the Secret.
        #[schemars(extend("x-required" = true))]
        pub key: String,
        /// Whether it may be missing.
        #[schemars(extend("x-default" = false))]
        pub optional: Option<bool>,
    }
}

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A node's system information. All fields but `swap` are required and may be empty, so they are always
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSystemInfo {
    /// Identity of the installation.
    #[serde(rename = "machineID")]
    #[schemars(extend("x-required" = true))]
    pub machine_id: String,
    /// Identity of the hardware.
    #[serde(rename = "systemUUID")]
    #[schemars(extend("x-required" = true))]
    pub system_uuid: String,
    /// Identity of the last boot.
    #[serde(rename = "bootID")]
    #[schemars(extend("x-required" = true))]
    pub boot_id: String,
    /// Version of the kernel.
    #[schemars(extend("x-required" = true))]
    pub kernel_version: String,
    /// Name of the operating system image.
    #[schemars(extend("x-required" = true))]
    pub os_image: String,
    /// Container runtime and its version.
    #[schemars(extend("x-required" = true))]
    pub container_runtime_version: String,
    /// Version of the kubelet.
    #[schemars(extend("x-required" = true))]
    pub kubelet_version: String,
    /// No longer reported.
    #[schemars(extend("x-required" = true))]
    pub kube_proxy_version: String,
    /// Operating system.
    #[schemars(extend("x-required" = true))]
    pub operating_system: String,
    /// Architecture of the processor.
    #[schemars(extend("x-required" = true))]
    pub architecture: String,
    /// Swap space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<NodeSwapStatus>,
}

/// Swap space of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSwapStatus {
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
}
