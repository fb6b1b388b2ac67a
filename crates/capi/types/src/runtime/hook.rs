//! Hooks: what an extension server may be asked, and what it responds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extension_config::FailurePolicy;
use crate::core::cluster_class::ClusterClassVariable;

/// API group of the hooks.
pub const GROUP: &str = "hooks.runtime.cluster.x-k8s.io";
/// The only version of the hooks.
pub const VERSION: &str = "v1alpha1";

/// Timeout of a call unless the handler has another, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 10;
/// Longest timeout that a handler may have, in seconds.
pub const MOST_TIMEOUT_SECONDS: i32 = 30;

macro_rules! hooks {
    ($($(#[$attribute:meta])* $variant:ident,)*) => {
        /// A call to extension servers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Hook {
            $($(#[$attribute])* $variant,)*
        }

        impl Hook {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

hooks! {
    /// Lists the handlers of a server.
    Discovery,
    GeneratePatches,
    ValidateTopology,
    DiscoverVariables,
    GenerateUpgradePlan,
    BeforeClusterCreate,
    AfterControlPlaneInitialized,
    BeforeClusterUpgrade,
    BeforeControlPlaneUpgrade,
    AfterControlPlaneUpgrade,
    BeforeWorkersUpgrade,
    AfterWorkersUpgrade,
    AfterClusterUpgrade,
    BeforeClusterDelete,
    CanUpdateMachine,
    CanUpdateMachineSet,
    UpdateMachine,
}

impl Hook {
    /// The hook of a handler, if it is known in this version.
    pub fn find(api_version: &str, name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|hook| hook.name() == name)?;
        (api_version == format!("{GROUP}/{VERSION}")).then_some(*known)
    }

    /// URL path of a call, as Kubernetes has paths of cluster-wide resources.
    pub fn path(self, handler: &str) -> String {
        let path = format!("/{GROUP}/{VERSION}/{}", self.name().to_lowercase());
        if handler.is_empty() { path } else { format!("{path}/{}", handler.to_lowercase()) }
    }

    /// `apiVersion` and `kind` of a request.
    pub fn request_type(self) -> (String, String) {
        (format!("{GROUP}/{VERSION}"), format!("{}Request", self.name()))
    }
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Status of a response that lets the operation go on.
pub const SUCCESS: &str = "Success";
/// Status of a response that does not.
pub const FAILURE: &str = "Failure";

/// What every response has. Unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Response {
    /// [`SUCCESS`] or [`FAILURE`].
    pub status: String,
    pub message: String,
    /// Not zero: the operation waits, and the hook is called again after this time.
    pub retry_after_seconds: i32,
}

/// Response of [`Hook::Discovery`], beside [`Response`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoveryResponse {
    pub handlers: Vec<DiscoveredHandler>,
}

/// A handler that a server reports.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoveredHandler {
    pub name: String,
    pub request_hook: super::GroupVersionHook,
    pub timeout_seconds: Option<i32>,
    /// Any text: what is unknown is reported, not misread.
    pub failure_policy: Option<String>,
}

impl DiscoveredHandler {
    pub fn policy(&self) -> Option<FailurePolicy> {
        match self.failure_policy.as_deref() {
            None | Some("Fail") => Some(FailurePolicy::Fail),
            Some("Ignore") => Some(FailurePolicy::Ignore),
            Some(_) => None,
        }
    }
}

/// Response of [`Hook::GeneratePatches`], beside [`Response`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GeneratePatchesResponse {
    pub items: Vec<GeneratedPatch>,
}

/// A patch of one template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GeneratedPatch {
    /// The item of the request that it is for.
    pub uid: String,
    /// [`JSON_PATCH`] or [`JSON_MERGE_PATCH`].
    pub patch_type: String,
    /// JSON in base64.
    pub patch: String,
}

/// Patch type: RFC 6902.
pub const JSON_PATCH: &str = "JSONPatch";
/// Patch type: RFC 7386.
pub const JSON_MERGE_PATCH: &str = "JSONMergePatch";

/// Response of [`Hook::DiscoverVariables`], beside [`Response`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoverVariablesResponse {
    pub variables: Vec<ClusterClassVariable>,
}

/// Response of [`Hook::GenerateUpgradePlan`], beside [`Response`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GenerateUpgradePlanResponse {
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// Empty: the fewest steps that the version skew allows.
    pub workers_upgrades: Vec<UpgradeStep>,
}

/// A version that an upgrade passes through.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct UpgradeStep {
    pub version: String,
}

/// A patch in a response of [`Hook::CanUpdateMachine`] and [`Hook::CanUpdateMachineSet`]: what of the differences of one
/// object the server can update in place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdatePatch {
    /// [`JSON_PATCH`] or [`JSON_MERGE_PATCH`].
    pub patch_type: String,
    /// JSON in base64.
    pub patch: String,
}

/// Request of [`Hook::GeneratePatches`] and [`Hook::ValidateTopology`], without type and settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TopologyRequest {
    /// Variables of all templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    pub items: Vec<TopologyRequestItem>,
}

/// Reference to a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyRequestItem {
    /// Names the template in the response; empty where nothing refers to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    pub holder_reference: HolderReference,
    pub object: Value,
    /// Variables of this template alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// The object that uses a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderReference {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// The field that names the template.
    pub field_path: String,
}

/// A variable with its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Variable {
    pub name: String,
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_types_are_upstreams() {
        assert_eq!(
            Hook::BeforeClusterCreate.path("Check"),
            "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/check"
        );
        assert_eq!(Hook::Discovery.path(""), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery");
        assert_eq!(Hook::GeneratePatches.request_type().1, "GeneratePatchesRequest");
        assert_eq!(
            Hook::find("hooks.runtime.cluster.x-k8s.io/v1alpha1", "UpdateMachine"),
            Some(Hook::UpdateMachine)
        );
        assert_eq!(Hook::find("hooks.runtime.cluster.x-k8s.io/v1", "UpdateMachine"), None);
        assert_eq!(Hook::find("hooks.runtime.cluster.x-k8s.io/v1alpha1", "Update"), None);
    }
}
