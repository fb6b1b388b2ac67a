//! Built-in kinds: the fields that controllers read.

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
    pub struct Node {
        pub metadata: ObjectMeta,
        pub spec: NodeSpec,
        pub status: NodeStatus,
    }

    pub struct NodeSpec {
        /// The machine's providerID.
        #[serde(rename = "providerID")]
        pub provider_id: String,
        pub unschedulable: bool,
        pub taints: Vec<Taint>,
    }

    /// Without the heartbeat time, so that heartbeats are no changes.
    pub struct NodeStatus {
        pub conditions: Vec<NodeCondition>,
        pub node_info: NodeSystemInfo,
        pub volumes_attached: Vec<AttachedVolume>,
    }

    pub struct NodeCondition {
        #[serde(rename = "type")]
        pub kind: String,
        /// `True`, `False` or `Unknown`.
        pub status: String,
        pub reason: String,
        pub message: String,
        pub last_transition_time: Option<Time>,
    }

    /// A volume attached to a node.
    pub struct AttachedVolume {
        pub name: String,
    }

    pub struct Pod {
        pub metadata: ObjectMeta,
        pub spec: PodSpec,
        pub status: PodStatus,
    }

    pub struct PodSpec {
        pub volumes: Vec<PodVolume>,
    }

    pub struct PodVolume {
        pub persistent_volume_claim: Option<ClaimVolume>,
    }

    pub struct ClaimVolume {
        /// Name of the claim, in the pod's namespace.
        pub claim_name: String,
    }

    pub struct PodStatus {
        pub phase: String,
    }

    pub struct Namespace {
        pub metadata: ObjectMeta,
    }

    pub struct DaemonSet {
        pub metadata: ObjectMeta,
    }

    pub struct PersistentVolume {
        pub metadata: ObjectMeta,
        pub spec: PersistentVolumeSpec,
    }

    pub struct PersistentVolumeSpec {
        pub csi: Option<CsiSource>,
        /// The claim it is bound to.
        pub claim_ref: Option<ClaimReference>,
    }

    /// A volume of a CSI driver.
    pub struct CsiSource {
        pub driver: String,
        /// The driver's id of the volume.
        pub volume_handle: String,
    }

    pub struct ClaimReference {
        /// Mostly `PersistentVolumeClaim`.
        pub kind: String,
        pub namespace: String,
        pub name: String,
    }

    /// A request to attach a volume to a node.
    pub struct VolumeAttachment {
        pub metadata: ObjectMeta,
        pub spec: VolumeAttachmentSpec,
        pub status: VolumeAttachmentStatus,
    }

    pub struct VolumeAttachmentSpec {
        pub node_name: String,
        pub source: VolumeAttachmentSource,
    }

    pub struct VolumeAttachmentSource {
        pub persistent_volume_name: Option<String>,
    }

    pub struct VolumeAttachmentStatus {
        pub attached: bool,
    }
}

impl Node {
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The kubelet stopped sending heartbeats: `Ready` is Unknown.
    pub fn is_unreachable(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "Unknown")
    }

    /// Equal in everything that controllers read.
    pub fn same_fields(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.status == other.status
            && self.metadata.labels == other.metadata.labels
            && self.metadata.annotations == other.metadata.annotations
            && self.metadata.deletion_timestamp == other.metadata.deletion_timestamp
    }
}

impl Pod {
    /// It has completed.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// It mirrors a static pod, which only its kubelet can stop.
    pub fn is_static(&self) -> bool {
        self.metadata.annotations.contains_key("kubernetes.io/config.mirror")
    }
}
