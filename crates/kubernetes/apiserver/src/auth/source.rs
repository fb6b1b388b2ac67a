//! How authentication, authorization and webhooks read stored objects.

use std::sync::Arc;

use serde_json::Value;

/// Read access to stored objects. Indexes built from it are kept until [`ObjectSource::bucket_revision`]
/// moves, so the answer must change whenever an object of the bucket does.
pub trait ObjectSource: Send + Sync {
    /// The object at a key, in its storage version.
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>>;

    /// All objects of a bucket in key order.
    fn list(&self, bucket: &str) -> Vec<Arc<Value>>;

    /// Revision of the last change in the bucket, 0 if there never was one.
    fn bucket_revision(&self, bucket: &str) -> u64;
}

/// Buckets read here.
pub mod bucket {
    /// Roles.
    pub const ROLES: &str = "rbac.authorization.k8s.io/roles";
    /// ClusterRoles.
    pub const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
    /// RoleBindings.
    pub const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
    /// ClusterRoleBindings.
    pub const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
    /// ServiceAccounts.
    pub const SERVICE_ACCOUNTS: &str = "/serviceaccounts";
    /// Secrets.
    pub const SECRETS: &str = "/secrets";
    /// Pods.
    pub const PODS: &str = "/pods";
    /// Nodes.
    pub const NODES: &str = "/nodes";
    /// Namespaces.
    pub const NAMESPACES: &str = "/namespaces";
    /// Services.
    pub const SERVICES: &str = "/services";
    /// Endpoints.
    pub const ENDPOINTS: &str = "/endpoints";
    /// EndpointSlices.
    pub const ENDPOINT_SLICES: &str = "discovery.k8s.io/endpointslices";
    /// CustomResourceDefinitions.
    pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
    /// MutatingWebhookConfigurations.
    pub const MUTATING_WEBHOOKS: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
    /// ValidatingWebhookConfigurations.
    pub const VALIDATING_WEBHOOKS: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";
}

/// The key of a namespaced object.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
