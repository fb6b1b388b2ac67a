//! What several core kinds share: references, template metadata, taints, and the strings by which objects of
//! Cluster API find each other.

use std::collections::BTreeMap;

use capstan_object::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::pattern;
use crate::wire::{choice, wire};

wire! {
    /// Labels and annotations of objects created from a template.
    #[schemars(extend("minProperties" = 1))]
    pub struct TemplateMeta {
        /// Labels of the objects.
        pub labels: BTreeMap<String, String>,
        /// Annotations of the objects.
        pub annotations: BTreeMap<String, String>,
    }

    /// Reference to an object of a provider. Its version follows from the contract labels of its
    /// CustomResourceDefinition.
    pub struct ContractVersionedObjectReference {
        /// Kind of the object.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND), extend("x-required" = true))]
        pub kind: String,
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// API group of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub api_group: String,
    }

    /// A Kubernetes version with the number of its machines.
    pub struct StatusVersion {
        /// Kubernetes version.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// Machines with this version.
        #[schemars(range(min = 1))]
        pub replicas: i32,
    }

    /// A taint for a machine's node.
    pub struct MachineTaint {
        /// Key of the taint.
        #[schemars(
            length(min = 1, max = 317),
            regex(pattern = pattern::TAINT_KEY),
            extend("x-required" = true)
        )]
        pub key: String,
        /// Value of the taint.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::LABEL_VALUE))]
        pub value: String,
        /// Effect on pods that do not tolerate the taint.
        #[schemars(extend("x-required" = true))]
        pub effect: Option<TaintEffect>,
        /// Whether the taint is restored when it is removed.
        #[schemars(extend("x-required" = true))]
        pub propagation: Option<MachineTaintPropagation>,
    }

    /// A condition as the v1beta1 contract reports it.
    pub struct V1Beta1Condition {
        /// Type of the condition, such as `Ready`.
        #[serde(rename = "type")]
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub kind: String,
        /// Status of the condition: `True`, `False` or `Unknown`.
        #[schemars(extend("x-required" = true))]
        pub status: String,
        /// Severity of the condition; only with status `False`.
        #[schemars(length(max = 32))]
        pub severity: String,
        /// When `status` last changed.
        #[schemars(extend("x-required" = true))]
        pub last_transition_time: Option<Time>,
        /// Machine-readable reason of the last transition.
        #[schemars(length(min = 1, max = 256))]
        pub reason: String,
        /// Human-readable details of the last transition.
        #[schemars(length(min = 1, max = 10240))]
        pub message: String,
    }
}

wire! {
    /// Conditions of the v1beta1 contract, where that contract had nothing else.
    pub struct V1Beta1Conditions {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
    }
}

/// Status of earlier contracts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deprecated<T> {
    /// Status under the v1beta1 contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<T>,
}

choice! {
    /// Polarity of a condition.
    pub enum ConditionPolarity {
        /// The condition is met with status `True`.
        Positive = "Positive",
        /// The condition is met with status `False`.
        Negative = "Negative",
    }
}

choice! {
    /// Effect of a taint on pods that do not tolerate it.
    pub enum TaintEffect {
        /// Pods are not scheduled onto the node.
        NoSchedule = "NoSchedule",
        /// Pods are scheduled elsewhere if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// Pods are not scheduled onto the node, and running pods are evicted.
        NoExecute = "NoExecute",
    }
}

choice! {
    /// Whether a taint is restored when it is removed from the Node.
    pub enum MachineTaintPropagation {
        /// The taint is restored whenever it is missing.
        Always = "Always",
        /// The taint is set once, when the Node joins.
        OnInitialization = "OnInitialization",
    }
}

/// Labels of the objects.
pub mod label {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use capstan_schema::meta;

    /// A name as a label value: itself, or its hash if it is not a valid value.
    pub fn value(name: &str) -> String {
        if meta::label_value(name).is_empty() {
            return name.to_owned();
        }
        // FNV-1a, as upstream: both must produce the same label.
        let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = name.bytes().fold(0x811c_9dc5, fnv);
        format!("hash_{}_z", URL_SAFE_NO_PAD.encode(hash.to_be_bytes()))
    }

    /// Cluster that an object belongs to.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// Marks objects that a topology manages.
    pub const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
    /// Name of a machine deployment in its topology.
    pub const TOPOLOGY_DEPLOYMENT_NAME: &str = "topology.cluster.x-k8s.io/deployment-name";
    /// Name of a machine pool in its topology.
    pub const TOPOLOGY_POOL_NAME: &str = "topology.cluster.x-k8s.io/pool-name";
    /// Provider that an object or a definition belongs to.
    pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
    /// Chooses the controllers that act on an object.
    pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
    /// Marks nodes whose machine may vanish at any time.
    pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
    /// Marks machines of the control plane.
    pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
    /// Control plane that a machine belongs to.
    pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
    /// MachineSet that a machine belongs to.
    pub const SET_NAME: &str = "cluster.x-k8s.io/set-name";
    /// MachineDeployment that a machine belongs to.
    pub const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
    /// Machine pool that a machine belongs to.
    pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
    /// Drain behavior of a pod: `skip` or `wait-completed`.
    pub const POD_DRAIN: &str = "cluster.x-k8s.io/drain";
    /// Hash of the template of a MachineSet and its machines.
    pub const MACHINE_TEMPLATE_HASH: &str = "machine-template-hash";
    /// Prefix of node role labels; synced from the machine.
    pub const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io";
    /// Domain of labels a kubelet must not set itself; synced from the machine.
    pub const NODE_RESTRICTION_DOMAIN: &str = "node-restriction.kubernetes.io";
    /// Domain of labels that Cluster API manages on nodes; synced from the machine.
    pub const MANAGED_NODE_DOMAIN: &str = "node.cluster.x-k8s.io";
}

/// Annotations of the objects.
pub mod annotation {
    /// On a node: the cluster.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// On a node: the namespace of the cluster.
    pub const CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
    /// On a node: the machine.
    pub const MACHINE: &str = "cluster.x-k8s.io/machine";
    /// On a node: the kind of the machine's owner.
    pub const OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
    /// On a node: the name of the machine's owner.
    pub const OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";
    /// On a node: labels that came from the machine.
    pub const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
    /// On a node: annotations that came from the machine.
    pub const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";
    /// On a node: taints that came from the machine.
    pub const TAINTS_FROM_MACHINE: &str = "cluster.x-k8s.io/taints-from-machine";
    /// Domain of annotations that Cluster API manages on nodes; synced from the machine.
    pub const MANAGED_NODE_DOMAIN: &str = "node.cluster.x-k8s.io";
    /// Pauses reconciliation of the object.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a cluster that `capstan adopt` imported: stops controllers from acting on its objects, whatever `spec.paused` is.
    pub const ADOPTION_LOCK: &str = "capstan.dev/adoption-lock";
    /// On a MachineSet: no machines are created.
    pub const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";
    /// On a machine: deleted first when its set scales down.
    pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    /// Name of the template an object was cloned from.
    pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
    /// Group and kind of the template an object was cloned from.
    pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
    /// On a machine: health checks skip it.
    pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
    /// On a machine: remediate it regardless of the checks.
    pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
    /// On a MachineSet: preflight checks to skip, separated by commas.
    pub const SKIP_PREFLIGHT_CHECKS: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";
    /// On infrastructure: managed externally.
    pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
    /// On a machine pool: replicas are managed externally.
    pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
    /// Minimum size for the autoscaler.
    pub const AUTOSCALER_MIN_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
    /// Maximum size for the autoscaler.
    pub const AUTOSCALER_MAX_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    /// On a machine: its node is not drained.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// On a machine: detaching of volumes is not awaited.
    pub const EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH: &str =
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// Prefix: deletion waits before the drain while such an annotation is there.
    pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
    /// Prefix: deletion waits before deleting the infrastructure while such an annotation exists.
    pub const PRE_TERMINATE_HOOK_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
    /// When the certificates of a machine expire; on machines and bootstrap configurations.
    pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";
    /// On a machine: moved to another set, not yet taken over.
    pub const PENDING_ACKNOWLEDGE_MOVE: &str =
        "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move";
    /// On a machine: updated in place.
    pub const UPDATE_IN_PROGRESS: &str = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
    /// On a MachineSet: machines it took over.
    pub const ACKNOWLEDGED_MOVE: &str = "in-place-updates.internal.cluster.x-k8s.io/acknowledged-move";
    /// On a MachineSet: the set its machines move to.
    pub const MOVE_MACHINES_TO: &str =
        "in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset";
    /// On a MachineSet: the sets its machines come from.
    pub const RECEIVE_MACHINES_FROM: &str =
        "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets";
    /// Revision of a MachineDeployment and its sets.
    pub const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
    /// On a MachineSet: desired replicas of its deployment at its last scaling.
    pub const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
    /// On a MachineSet: most replicas its deployment may have, surge included.
    pub const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
    /// Generation at which an object was last written in the stored version.
    pub const CRD_MIGRATION_OBSERVED_GENERATION: &str = "crd-migration.cluster.x-k8s.io/observed-generation";
    /// On a Cluster of a topology: the version that an upgrade in steps is at.
    pub const TOPOLOGY_UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
    /// Data that a version lacks, for conversion back.
    pub const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";
    /// On a Cluster: holds a topology's upgrade at this machine deployment.
    pub const TOPOLOGY_HOLD_UPGRADE_SEQUENCE: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
    /// On a machine deployment of a topology: upgraded later.
    pub const TOPOLOGY_DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";
    /// On a Cluster: how many machine deployments are upgraded at a time.
    pub const TOPOLOGY_UPGRADE_CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
    /// On a Cluster: allows changing to an incompatible class.
    pub const TOPOLOGY_UNSAFE_UPDATE_CLASS_NAME: &str =
        "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
    /// On a Cluster: allows version changes that the rules forbid.
    pub const TOPOLOGY_UNSAFE_UPDATE_VERSION: &str =
        "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    /// On an object sent with dry run: no defaults that depend on other objects.
    pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
}

/// Type of the Secrets that controllers create for a cluster.
pub const CLUSTER_SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// Suffix of the kind of a template.
pub const TEMPLATE_SUFFIX: &str = "Template";

/// Condition types that several kinds share.
pub mod condition {
    pub const AVAILABLE: &str = "Available";
    pub const READY: &str = "Ready";
    pub const BOOTSTRAP_CONFIG_READY: &str = "BootstrapConfigReady";
    pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
    pub const MACHINES_READY: &str = "MachinesReady";
    pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
    pub const ROLLING_OUT: &str = "RollingOut";
    pub const SCALING_UP: &str = "ScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const REMEDIATING: &str = "Remediating";
    pub const DELETING: &str = "Deleting";
    pub const PAUSED: &str = "Paused";
}

/// Reasons that several conditions share.
pub mod reason {
    pub const AVAILABLE: &str = "Available";
    pub const NOT_AVAILABLE: &str = "NotAvailable";
    pub const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";
    pub const READY: &str = "Ready";
    pub const NOT_READY: &str = "NotReady";
    pub const READY_UNKNOWN: &str = "ReadyUnknown";
    pub const UP_TO_DATE: &str = "UpToDate";
    pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
    pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
    pub const ROLLING_OUT: &str = "RollingOut";
    pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
    pub const SCALING_UP: &str = "ScalingUp";
    pub const NOT_SCALING_UP: &str = "NotScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
    pub const REMEDIATING: &str = "Remediating";
    pub const NOT_REMEDIATING: &str = "NotRemediating";
    pub const NO_REPLICAS: &str = "NoReplicas";
    pub const WAITING_FOR_REPLICAS_SET: &str = "WaitingForReplicasSet";
    pub const INVALID_CONDITION_REPORTED: &str = "InvalidConditionReported";
    pub const INTERNAL_ERROR: &str = "InternalError";
    pub const OBJECT_DOES_NOT_EXIST: &str = "ObjectDoesNotExist";
    pub const OBJECT_DELETED: &str = "ObjectDeleted";
    pub const NOT_PAUSED: &str = "NotPaused";
    pub const PAUSED: &str = "Paused";
    pub const CONNECTION_DOWN: &str = "ConnectionDown";
    pub const NOT_DELETING: &str = "NotDeleting";
    pub const DELETING: &str = "Deleting";
    pub const DELETION_COMPLETED: &str = "DeletionCompleted";
    pub const INSPECTION_FAILED: &str = "InspectionFailed";
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    pub const WAITING_FOR_CONTROL_PLANE_INITIALIZED: &str = "WaitingForControlPlaneInitialized";
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    pub const PROVISIONED: &str = "Provisioned";
    pub const NOT_PROVISIONED: &str = "NotProvisioned";
}
