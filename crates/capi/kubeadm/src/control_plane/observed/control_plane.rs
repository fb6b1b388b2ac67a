//! A control plane as it was observed.

use std::sync::Arc;

use capstan_capi_types::bootstrap::{ExternalEtcd, KubeadmConfigSpec};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_object::Conditions;
use jiff::Timestamp;

use super::etcd::EtcdMember;

/// A machine of the control plane with what it was made from.
#[derive(Debug, Clone)]
pub struct Member {
    /// The machine.
    pub machine: Arc<Machine>,
    /// What it booted from, if that can be read.
    pub config: Option<KubeadmConfigSpec>,
    /// The template of its infrastructure, if that can be told.
    pub origin: Option<Origin>,
    /// Its node, whose name its member of etcd has, too; empty while none is known.
    pub node: String,
}

/// The template an infrastructure machine was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Name of the template.
    pub name: String,
    /// `Kind.group` of the template.
    pub group_kind: String,
}

/// A control plane as it was observed.
#[derive(Debug, Clone)]
pub struct Plane {
    /// What is wanted.
    pub control_plane: Arc<KubeadmControlPlane>,
    /// Its cluster.
    pub cluster: Arc<Cluster>,
    /// Its machines, in order of their names.
    pub machines: Vec<Member>,
    /// Members of etcd; empty if they cannot be told, or if etcd is elsewhere.
    pub etcd: Vec<EtcdMember>,
    /// The time.
    pub now: Timestamp,
}

const COMPONENTS: [&str; 3] = [
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
];

impl Plane {
    /// etcd runs on the machines of the control plane.
    pub fn manages_etcd(&self) -> bool {
        let etcd = &self.control_plane.spec.kubeadm_config_spec.cluster_configuration.etcd;
        etcd.external == ExternalEtcd::default()
    }

    /// The first API server takes requests.
    pub fn is_initialized(&self) -> bool {
        self.control_plane.status.initialization.control_plane_initialized == Some(true)
    }

    /// Machines wanted.
    pub fn wanted(&self) -> usize {
        usize::try_from(self.control_plane.spec.replicas.unwrap_or(1)).unwrap_or(0)
    }

    /// A machine is on its way out.
    pub fn has_deleting_machine(&self) -> bool {
        self.machines.iter().any(|member| member.machine.metadata.is_deleting())
    }

    /// The conditions by which a machine's part of the control plane is known to be healthy.
    pub fn health_conditions(&self) -> Vec<&'static str> {
        let mut kinds = COMPONENTS.to_vec();
        if self.manages_etcd() {
            kinds.extend([condition::MACHINE_ETCD_POD_HEALTHY, condition::MACHINE_ETCD_MEMBER_HEALTHY]);
        }
        kinds
    }

    /// Everything of the control plane on a machine but etcd's membership is healthy.
    pub(crate) fn components_healthy(&self, machine: &Machine) -> bool {
        let is_true = |kind: &str| machine.status.conditions.is_condition_true(kind);
        COMPONENTS.iter().all(|kind| is_true(kind))
            && (!self.manages_etcd() || is_true(condition::MACHINE_ETCD_POD_HEALTHY))
    }

    /// A machine by its name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.machines.iter().find(|member| member.machine.metadata.name == name)
    }

    /// The machine of a node.
    pub(crate) fn machine_of_node(&self, node: &str) -> Option<&Machine> {
        self.machines.iter().find(|member| member.node == node).map(|member| &*member.machine)
    }
}
