//! `clusterctl.cluster.x-k8s.io/v1alpha3`: the inventory that clusterctl keeps in a management cluster.

mod provider;

pub use provider::{Provider, ProviderType};

/// Labels of the objects.
pub mod label {
    /// Marks what clusterctl installed.
    pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
    /// Marks what clusterctl needs itself: `inventory` or `cert-manager`.
    pub const CORE: &str = "clusterctl.cluster.x-k8s.io/core";
    /// On a definition: its objects are moved.
    pub const MOVE: &str = "clusterctl.cluster.x-k8s.io/move";
    /// On a definition: its objects are moved with everything they own.
    pub const MOVE_HIERARCHY: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";
}

/// Annotations of the objects.
pub mod annotation {
    /// On a definition: its name need not follow the rule.
    pub const SKIP_CRD_NAME_PREFLIGHT_CHECK: &str =
        "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check";
    /// On an object deleted because it was moved away.
    pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
    /// On an object that must not be moved yet.
    pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
}
