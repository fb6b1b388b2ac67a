//! Read access to stored objects for authentication, authorization and webhooks.

use std::sync::Arc;

use serde_json::Value;

/// Read access to stored objects. Indexes built from it are kept until [`ObjectSource::bucket_revision`] changes, so
/// it must change whenever an object of the bucket does.
pub trait ObjectSource: Send + Sync {
    /// The object at a key, in its storage version.
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>>;

    /// All objects of a bucket in key order.
    fn list(&self, bucket: &str) -> Vec<Arc<Value>>;

    /// Calls `visit` with every entry of a bucket, in key order. Nothing is parsed unless the visitor asks for it.
    fn visit(&self, bucket: &str, visit: &mut dyn FnMut(StoredEntry<'_>));

    /// Revision of the last change in the bucket; 0 if there was none.
    fn bucket_revision(&self, bucket: &str) -> u64;
}

/// An entry of a bucket, not parsed yet.
pub struct StoredEntry<'a> {
    pub key: &'a Arc<str>,
    /// Revision of its last change.
    pub revision: u64,
    /// Parses the object; `None` if that fails.
    pub parse: &'a dyn Fn() -> Option<Arc<Value>>,
}

/// Buckets read by this module.
pub mod bucket {
    pub const ROLES: &str = "rbac.authorization.k8s.io/roles";
    pub const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
    pub const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
    pub const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
    pub const SERVICE_ACCOUNTS: &str = "/serviceaccounts";
    pub const SECRETS: &str = "/secrets";
    pub const PODS: &str = "/pods";
    pub const NODES: &str = "/nodes";
    pub const NAMESPACES: &str = "/namespaces";
    pub const SERVICES: &str = "/services";
    pub const IP_ADDRESSES: &str = "networking.k8s.io/ipaddresses";
    pub const SERVICE_CIDRS: &str = "networking.k8s.io/servicecidrs";
    pub const PERSISTENT_VOLUMES: &str = "/persistentvolumes";
    pub const PERSISTENT_VOLUME_CLAIMS: &str = "/persistentvolumeclaims";
    pub const VOLUME_ATTRIBUTES_CLASSES: &str = "storage.k8s.io/volumeattributesclasses";
    pub const ENDPOINTS: &str = "/endpoints";
    pub const ENDPOINT_SLICES: &str = "discovery.k8s.io/endpointslices";
    pub const FLOW_SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
    pub const PRIORITY_LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";
    pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
    pub const MUTATING_WEBHOOKS: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
    pub const VALIDATING_POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
    pub const VALIDATING_POLICY_BINDINGS: &str =
        "admissionregistration.k8s.io/validatingadmissionpolicybindings";
    pub const MUTATING_POLICIES: &str = "admissionregistration.k8s.io/mutatingadmissionpolicies";
    pub const MUTATING_POLICY_BINDINGS: &str = "admissionregistration.k8s.io/mutatingadmissionpolicybindings";
    pub const VALIDATING_WEBHOOKS: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";
}

/// The key of a namespaced object.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
