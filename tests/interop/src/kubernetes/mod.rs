//! The API server, compared with kube-apiserver, and used by kubectl, etcdctl and client libraries.

pub mod clients;
pub mod e2e;
pub mod etcd_members;
pub mod kms;
pub mod kubectl_workload;
pub mod oidc;
pub mod parity;
pub mod port_forward;
pub mod raw;
mod varying;
pub mod verdicts;
