//! Controllers and kinds, compared with Cluster API's managers, clusterctl and kubeadm.

pub mod autoscaler;
pub mod clusterctl;
pub mod conversion_goldens;
pub mod corefile_goldens;
pub mod gitops;
pub mod helm;
pub mod kubeadm_accepts;
pub mod manager;
pub mod planner;
pub mod schema_diff;
pub mod topology_diff;
pub mod upstream;
