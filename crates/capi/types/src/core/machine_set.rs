//! `MachineSet`: keeps a number of equal machines.

use capstan_object::{Condition, LabelSelector, ObjectMeta, object};

use super::common::{Deprecated, StatusVersion, TemplateMeta, V1Beta1Condition};
use super::machine::MachineSpec;
use crate::wire::{choice, wire};

object!(MachineSet, "cluster.x-k8s.io" / "v1beta2", "MachineSet", "machinesets", Namespaced);

wire! {
    /// Maintains a number of machines of one template.
    pub struct MachineSet {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: MachineSetSpec,
        /// Observed state.
        pub status: MachineSetStatus,
    }

    /// Desired state of a MachineSet.
    pub struct MachineSetSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Desired number of machines.
        pub replicas: Option<i32>,
        /// Label selector of the machines.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// Naming of the machines.
        pub machine_naming: MachineNamingSpec,
        /// Settings of the deletion of machines.
        pub deletion: MachineSetDeletionSpec,
    }

    /// Order of deletion.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineSetDeletionSpec {
        /// Order in which machines are deleted when scaling down.
        pub order: Option<MachineSetDeletionOrder>,
    }

    /// Template of the machines.
    pub struct MachineTemplateSpec {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state of each machine.
        #[schemars(extend("x-required" = true))]
        pub spec: MachineSpec,
    }

    /// Naming of the machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineNamingSpec {
        /// Go template of the names, with the variables `.cluster.name`, `.random` and the owner's `.name`.
        #[schemars(length(min = 1, max = 256))]
        pub template: String,
    }

    /// Observed state of a MachineSet.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineSetStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// The label selector as text, for the scale subresource.
        #[schemars(length(min = 1, max = 4096))]
        pub selector: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<MachineSetV1Beta1DeprecatedStatus>>,
    }

    /// Status of a MachineSet under the v1beta1 contract.
    pub struct MachineSetV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Machines that have all labels of the template.
        pub fully_labeled_replicas: i32,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: i32,
    }
}

choice! {
    /// Order in which machines are deleted when a MachineSet scales down.
    pub enum MachineSetDeletionOrder {
        /// In any order, unhealthy machines first.
        Random = "Random",
        /// Newest machines first.
        Newest = "Newest",
        /// Oldest machines first.
        Oldest = "Oldest",
    }
}

/// Keeps a MachineSet until its machines are gone.
pub const FINALIZER: &str = "cluster.x-k8s.io/machineset";

/// Keeps a MachineSet of a topology until its templates are gone.
pub const TOPOLOGY_FINALIZER: &str = "machineset.topology.cluster.x-k8s.io";

/// Reasons of the conditions of a MachineSet and of the machines it replaces.
pub mod reason {
    pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
    pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
    pub const MACHINE_DELETING: &str = "MachineDeleting";
}

choice! {
    /// Preflight checks of a MachineSet.
    pub enum MachineSetPreflightCheck {
        /// All checks; only for skipping them.
        All = "All",
        /// kubeadm on the machine is of the control plane's minor version.
        KubeadmVersionSkew = "KubeadmVersionSkew",
        /// The machine's version is not newer than the control plane, nor too old.
        KubernetesVersionSkew = "KubernetesVersionSkew",
        /// The control plane is neither being created nor upgraded.
        ControlPlaneIsStable = "ControlPlaneIsStable",
        /// The machine has the very version of the control plane; for topologies.
        ControlPlaneVersionSkew = "ControlPlaneVersionSkew",
    }
}
