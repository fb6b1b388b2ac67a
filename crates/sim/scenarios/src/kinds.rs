//! Kinds by name, in the management cluster and in guests.

use capstan_controller::KindName;
use capstan_object::{Object, Scope};
use serde_json::Value;

use capstan_capi_types::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use capstan_capi_types::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet,
};
use capstan_sim_provider::types::{
    SimCluster, SimClusterTemplate, SimMachine, SimMachinePool, SimMachinePoolTemplate, SimMachineTemplate,
};

/// Every kind that a cluster consists of.
pub fn core() -> Vec<KindName> {
    fn of<T: Object>() -> KindName {
        KindName::of::<T>()
    }
    vec![
        of::<Cluster>(),
        of::<SimCluster>(),
        of::<KubeadmControlPlane>(),
        of::<MachineDeployment>(),
        of::<MachineSet>(),
        of::<MachinePool>(),
        of::<SimMachinePool>(),
        of::<SimMachinePoolTemplate>(),
        of::<MachineHealthCheck>(),
        of::<Machine>(),
        of::<SimMachine>(),
        of::<KubeadmConfig>(),
        of::<SimMachineTemplate>(),
        of::<KubeadmConfigTemplate>(),
        of::<ClusterClass>(),
        of::<SimClusterTemplate>(),
    ]
}

/// Every kind whose objects have owners: those of a cluster, its generated objects and its add-ons.
pub(crate) fn owned() -> Vec<KindName> {
    let mut kinds = core();
    kinds.extend([
        KindName::of::<ClusterResourceSet>(),
        KindName::of::<ClusterResourceSetBinding>(),
        KindName::namespaced("", "v1", "Secret", "secrets"),
        KindName::namespaced("", "v1", "ConfigMap", "configmaps"),
    ]);
    kinds
}

/// A kind of the core group in a guest's API, such as Node.
pub fn in_guest(kind: &str, plural: &str, scope: Scope) -> KindName {
    let mut name = KindName::namespaced("", "v1", kind.to_owned(), plural.to_owned());
    name.scope = scope;
    name
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn has_label(object: &Value, label: &str) -> bool {
    object["metadata"]["labels"].get(label).is_some()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The condition has status `True`.
pub(crate) fn holds(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == condition && one["status"] == "True")
}
