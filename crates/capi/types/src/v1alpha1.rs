//! The kinds that had `v1alpha1` before v1beta2, for schemas and for reading what is converted.

use std::collections::BTreeMap;

use capstan_object::{LabelSelector, ObjectMeta, object};

use crate::core::V1Beta1Condition;
use crate::runtime::{FailurePolicy, GroupVersionHook, ServiceReference};
use crate::v1beta1::core::V1Beta2Conditions;
use crate::wire::wire;

object!(
    ExtensionConfig,
    "runtime.cluster.x-k8s.io" / "v1alpha1",
    "ExtensionConfig",
    "extensionconfigs",
    Cluster
);

wire! {
    /// An extension server that controllers call.
    pub struct ExtensionConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: ExtensionConfigSpec,
        /// Observed state.
        pub status: ExtensionConfigStatus,
    }

    /// Where the server is, and for which namespaces it is called.
    pub struct ExtensionConfigSpec {
        /// How the server is reached.
        #[schemars(extend("x-required" = true))]
        pub client_config: ClientConfig,
        /// Labels of the namespaces whose objects it is called for; all namespaces by default.
        pub namespace_selector: Option<LabelSelector>,
        /// Sent with every call; a ClusterClass may override them.
        pub settings: BTreeMap<String, String>,
    }

    /// How a server is reached: exactly one of `url` and `service`.
    pub struct ClientConfig {
        /// URL with scheme `https`; paths of hooks are appended.
        #[schemars(length(min = 1, max = 512))]
        pub url: String,
        /// A Service of the management cluster.
        pub service: ServiceReference,
        /// Certificate authorities of the server, PEM in base64; those of the operating system if absent.
        #[schemars(length(min = 1, max = 51200), extend("format" = "byte"))]
        pub ca_bundle: String,
    }

    /// Observed state of an extension server.
    pub struct ExtensionConfigStatus {
        /// What the server answers, as of the last successful discovery.
        #[schemars(
            length(max = 512),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub handlers: Vec<ExtensionHandler>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// A handler of a hook.
    pub struct ExtensionHandler {
        /// Unique name: that of the handler, a dot and that of the ExtensionConfig.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub name: String,
        /// The hook it answers.
        #[schemars(extend("x-required" = true))]
        pub request_hook: GroupVersionHook,
        /// Timeout of a call; 10 seconds by default.
        pub timeout_seconds: Option<i32>,
        /// Whether a call that fails is ignored; it is not by default.
        pub failure_policy: Option<FailurePolicy>,
    }
}
