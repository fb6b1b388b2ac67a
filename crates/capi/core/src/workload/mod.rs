//! What controllers see of workload clusters: typed views of the built-in kinds they read, and the Nodes of every
//! cluster kept in memory, so that a look at a machine costs no request.

mod kinds;
mod nodes;

pub use kinds::{
    DaemonSet, Namespace, Node, NodeCondition, NodeSpec, NodeStatus, PersistentVolume, Pod, PodVolume,
    VolumeAttachment,
};
pub use nodes::{NodeError, Nodes};
