//! `ExtensionConfig`: an extension server and what it answers.

use std::collections::BTreeMap;

use capstan_object::{Condition, LabelSelector, ObjectMeta, object};

use crate::core::{Deprecated, V1Beta1Conditions};
use crate::wire::{choice, wire};

object!(
    ExtensionConfig,
    "runtime.cluster.x-k8s.io" / "v1beta2",
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
        #[schemars(extend("x-required" = true))]
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
    #[schemars(extend("minProperties" = 1))]
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

    /// Names a Service.
    pub struct ServiceReference {
        /// Namespace of the Service.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub namespace: String,
        /// Name of the Service.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub name: String,
        /// URL path; paths of hooks are appended.
        #[schemars(length(min = 1, max = 512))]
        pub path: String,
        /// Port of the Service; 443 by default.
        pub port: Option<i32>,
    }

    /// Observed state of an extension server.
    #[schemars(extend("minProperties" = 1))]
    pub struct ExtensionConfigStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// What the server answers, as of the last successful discovery.
        #[schemars(
            length(max = 512),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub handlers: Vec<ExtensionHandler>,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<V1Beta1Conditions>>,
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
        #[schemars(range(min = 1))]
        pub timeout_seconds: i32,
        /// Whether a call that fails is ignored; it is not by default.
        pub failure_policy: Option<FailurePolicy>,
    }

    /// A hook and its version.
    pub struct GroupVersionHook {
        /// API group and version of the hook.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub api_version: String,
        /// Name of the hook.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub hook: String,
    }
}

choice! {
    /// Effect of a failed call.
    pub enum FailurePolicy {
        /// The call counts as answered.
        Ignore = "Ignore",
        /// The operation does not go on.
        Fail = "Fail",
    }
}

/// Annotation of an ExtensionConfig: a Secret, `namespace/name`, whose `ca.crt` becomes the `caBundle`.
pub const INJECT_CA_FROM_SECRET: &str = "runtime.cluster.x-k8s.io/inject-ca-from-secret";

/// Key of the certificate authority in that Secret.
pub const CA_KEY: &str = "ca.crt";

/// Condition types of an ExtensionConfig, beside the [shared ones](crate::core::condition).
pub mod condition {
    pub const DISCOVERED: &str = "Discovered";
}

/// Reasons of an ExtensionConfig's conditions, beside the [shared ones](crate::core::reason).
pub mod reason {
    pub const DISCOVERED: &str = "Discovered";
    pub const NOT_DISCOVERED: &str = "NotDiscovered";
}

impl ServiceReference {
    pub fn is_defined(&self) -> bool {
        *self != Self::default()
    }
}
