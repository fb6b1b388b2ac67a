//! CustomResourceDefinitions of providers.

use capstan_capi_types::definitions::{
    CLUSTER_LABEL, CLUSTERCTL, Column, Definition, Version, age, paused, text,
};
use capstan_object::Object;
use schemars::JsonSchema;
use serde_json::Value;

/// The labels of a provider's definitions: its name in clusterctl's inventory, and the version that follows the
/// v1beta2 contract.
pub const fn labels(inventory: &'static str, version: &'static str) -> [(&'static str, &'static str); 3] {
    [CLUSTERCTL, ("cluster.x-k8s.io/provider", inventory), ("cluster.x-k8s.io/v1beta2", version)]
}

/// The definition of a kind with one version.
pub fn definition<T: Object>(labels: &'static [(&'static str, &'static str)], version: Version) -> Value {
    Definition { kind: T::KIND, short_names: &[], labels, versions: vec![version] }.to_value()
}

fn ready() -> Column {
    text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#)
}

fn end() -> [Column; 4] {
    [ready(), text("Provisioned", ".status.initialization.provisioned"), paused(), age()]
}

/// A version of cluster infrastructure; `own` columns follow the common ones.
pub fn cluster_version<T: Object + JsonSchema>(own: Vec<Column>) -> Version {
    let first = [text("Cluster", CLUSTER_LABEL), text("Endpoint", ".spec.controlPlaneEndpoint.host")];
    Version::of::<T>(first.into_iter().chain(own).chain(end()).collect()).with_status()
}

/// A version of machine infrastructure.
pub fn machine_version<T: Object + JsonSchema>() -> Version {
    let first = [
        text("Cluster", CLUSTER_LABEL),
        text("Machine", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#),
        text("Provider ID", ".spec.providerID").wide(),
        text("Internal-IP", r#".status.addresses[?(@.type=="InternalIP")].address"#),
        text("State", r#".status.conditions[?(@.type=="Ready")].reason"#),
    ];
    Version::of::<T>(first.into_iter().chain(end()).collect()).with_status()
}

/// A version of the infrastructure of a MachinePool.
pub fn pool_version<T: Object + JsonSchema>() -> Version {
    let first = [
        text("Cluster", CLUSTER_LABEL),
        text("MachinePool", r#".metadata.ownerReferences[?(@.kind=="MachinePool")].name"#),
        text("Replicas", ".status.replicas"),
        text("State", r#".status.conditions[?(@.type=="Ready")].reason"#),
    ];
    Version::of::<T>(first.into_iter().chain(end()).collect()).with_status()
}

/// A version of a template.
pub fn template_version<T: Object + JsonSchema>() -> Version {
    Version::of::<T>(vec![age()])
}
