//! Workload clusters: typed views of the built-in kinds that controllers read, and cached Nodes of every cluster, so
//! that reconciling a machine costs no request.

mod kinds;
mod nodes;

pub use kinds::{
    DaemonSet, Namespace, Node, NodeCondition, NodeSpec, NodeStatus, PersistentVolume, Pod, PodVolume,
    VolumeAttachment,
};
pub use nodes::{NodeError, Nodes};
