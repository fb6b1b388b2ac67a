//! The fields of built-in kinds that controllers read; everything else is left where it is.

use capstan_capi_types::kubernetes::{NodeSystemInfo, Taint};
use capstan_object::{ObjectMeta, Time, object};
use serde::{Deserialize, Serialize};

macro_rules! view {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$attribute:meta])* pub $field:ident: $type:ty,)* })*) => {$(
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$meta])*
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }
    )*};
}

object!(Node, "" / "v1", "Node", "nodes", Cluster);
object!(Pod, "" / "v1", "Pod", "pods", Namespaced);
object!(Namespace, "" / "v1", "Namespace", "namespaces", Cluster);
object!(DaemonSet, "apps" / "v1", "DaemonSet", "daemonsets", Namespaced);
object!(PersistentVolume, "" / "v1", "PersistentVolume", "persistentvolumes", Cluster);
object!(VolumeAttachment, "storage.k8s.io" / "v1", "VolumeAttachment", "volumeattachments", Cluster);

view! {
    /// A node.
    pub struct Node {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: NodeSpec,
        /// What the kubelet and others report.
        pub status: NodeStatus,
    }

    /// What is wanted of a node.
    pub struct NodeSpec {
        /// Identity of the machine.
        #[serde(rename = "providerID")]
        pub provider_id: String,
        /// No pods are placed there.
        pub unschedulable: bool,
        /// Taints.
        pub taints: Vec<Taint>,
    }

    /// What is reported about a node. The time of the last heartbeat is left out on purpose: it changes nothing.
    pub struct NodeStatus {
        /// Conditions.
        pub conditions: Vec<NodeCondition>,
        /// The node's system.
        pub node_info: NodeSystemInfo,
        /// Volumes attached to it.
        pub volumes_attached: Vec<AttachedVolume>,
    }

    /// A condition of a node.
    pub struct NodeCondition {
        /// Aspect.
        #[serde(rename = "type")]
        pub kind: String,
        /// `True`, `False` or `Unknown`.
        pub status: String,
        /// One word for machines.
        pub reason: String,
        /// A sentence for people.
        pub message: String,
        /// When the status last changed.
        pub last_transition_time: Option<Time>,
    }

    /// A volume attached to a node.
    pub struct AttachedVolume {
        /// Name of the volume.
        pub name: String,
    }

    /// A pod.
    pub struct Pod {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodSpec,
        /// What is reported.
        pub status: PodStatus,
    }

    /// What is wanted of a pod.
    pub struct PodSpec {
        /// Volumes.
        pub volumes: Vec<PodVolume>,
    }

    /// A volume of a pod.
    pub struct PodVolume {
        /// The claim it stands for.
        pub persistent_volume_claim: Option<ClaimVolume>,
    }

    /// The claim a volume stands for.
    pub struct ClaimVolume {
        /// Name of the claim, in the pod's namespace.
        pub claim_name: String,
    }

    /// What is reported about a pod.
    pub struct PodStatus {
        /// Stage of life.
        pub phase: String,
    }

    /// A namespace.
    pub struct Namespace {
        /// Metadata.
        pub metadata: ObjectMeta,
    }

    /// A DaemonSet.
    pub struct DaemonSet {
        /// Metadata.
        pub metadata: ObjectMeta,
    }

    /// A persistent volume.
    pub struct PersistentVolume {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PersistentVolumeSpec,
    }

    /// What is wanted of a persistent volume.
    pub struct PersistentVolumeSpec {
        /// Where it comes from, if from a CSI driver.
        pub csi: Option<CsiSource>,
        /// The claim it is bound to.
        pub claim_ref: Option<ClaimReference>,
    }

    /// A volume of a CSI driver.
    pub struct CsiSource {
        /// Driver.
        pub driver: String,
        /// The driver's name for the volume.
        pub volume_handle: String,
    }

    /// A claim.
    pub struct ClaimReference {
        /// Kind, `PersistentVolumeClaim` as a rule.
        pub kind: String,
        /// Namespace.
        pub namespace: String,
        /// Name.
        pub name: String,
    }

    /// The wish to attach a volume to a node.
    pub struct VolumeAttachment {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: VolumeAttachmentSpec,
        /// What is reported.
        pub status: VolumeAttachmentStatus,
    }

    /// What is to be attached where.
    pub struct VolumeAttachmentSpec {
        /// Node.
        pub node_name: String,
        /// Volume.
        pub source: VolumeAttachmentSource,
    }

    /// A volume to be attached.
    pub struct VolumeAttachmentSource {
        /// Name of the persistent volume.
        pub persistent_volume_name: Option<String>,
    }

    /// Whether a volume is attached.
    pub struct VolumeAttachmentStatus {
        /// It is.
        pub attached: bool,
    }
}

impl Node {
    /// A condition of the node.
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Nobody has heard from the kubelet for a while.
    pub fn is_unreachable(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "Unknown")
    }

    /// The same but for the version and the like: nothing to act upon.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.status == other.status
            && self.metadata.labels == other.metadata.labels
            && self.metadata.annotations == other.metadata.annotations
            && self.metadata.deletion_timestamp == other.metadata.deletion_timestamp
    }
}

impl Pod {
    /// It has run to its end.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// It is the image of a static pod, which only its kubelet can stop.
    pub fn is_static(&self) -> bool {
        self.metadata.annotations.contains_key("kubernetes.io/config.mirror")
    }
}
