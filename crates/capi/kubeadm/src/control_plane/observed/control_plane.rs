//! The observed state of a control plane.

use std::sync::Arc;

use capstan_capi_types::bootstrap::{ExternalEtcd, KubeadmConfigSpec};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_object::Conditions;
use jiff::Timestamp;

use super::etcd::EtcdMember;

/// A machine of the control plane and what it was created from.
#[derive(Debug, Clone)]
pub struct ControlPlaneMachine {
    pub machine: Arc<Machine>,
    /// Its bootstrap configuration, if it can be read.
    pub config: Option<KubeadmConfigSpec>,
    /// The template of its infrastructure machine, if known.
    pub origin: Option<TemplateOrigin>,
    /// Name of its node and of its etcd member; empty while unknown.
    pub node: String,
}

/// The template an infrastructure machine was cloned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateOrigin {
    pub name: String,
    /// `Kind.group` of the template.
    pub group_kind: String,
}

/// The observed state of a control plane.
#[derive(Debug, Clone)]
pub struct ControlPlaneState {
    pub control_plane: Arc<KubeadmControlPlane>,
    pub cluster: Arc<Cluster>,
    /// Sorted by name.
    pub machines: Vec<ControlPlaneMachine>,
    /// etcd members; empty if unknown, or with external etcd.
    pub etcd: Vec<EtcdMember>,
    pub now: Timestamp,
}

const COMPONENTS: [&str; 3] = [
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
];

impl ControlPlaneState {
    /// etcd is stacked: it runs on the control plane machines.
    pub fn manages_etcd(&self) -> bool {
        let etcd = &self.control_plane.spec.kubeadm_config_spec.cluster_configuration.etcd;
        etcd.external == ExternalEtcd::default()
    }

    /// The first API server accepts requests.
    pub fn is_initialized(&self) -> bool {
        self.control_plane.status.initialization.control_plane_initialized == Some(true)
    }

    pub fn wanted(&self) -> usize {
        usize::try_from(self.control_plane.spec.replicas.unwrap_or(1)).unwrap_or(0)
    }

    pub fn has_deleting_machine(&self) -> bool {
        self.machines.iter().any(|member| member.machine.metadata.is_deleting())
    }

    /// Health conditions of a machine.
    pub fn health_conditions(&self) -> Vec<&'static str> {
        let mut kinds = COMPONENTS.to_vec();
        if self.manages_etcd() {
            kinds.extend([condition::MACHINE_ETCD_POD_HEALTHY, condition::MACHINE_ETCD_MEMBER_HEALTHY]);
        }
        kinds
    }

    /// All static pods of a machine are healthy.
    pub(crate) fn components_healthy(&self, machine: &Machine) -> bool {
        let is_true = |kind: &str| machine.status.conditions.is_condition_true(kind);
        COMPONENTS.iter().all(|kind| is_true(kind))
            && (!self.manages_etcd() || is_true(condition::MACHINE_ETCD_POD_HEALTHY))
    }

    pub(crate) fn machine(&self, name: &str) -> Option<&ControlPlaneMachine> {
        self.machines.iter().find(|member| member.machine.metadata.name == name)
    }

    pub(crate) fn machine_of_node(&self, node: &str) -> Option<&Machine> {
        self.machines.iter().find(|member| member.node == node).map(|member| &*member.machine)
    }

    /// The etcd member of a machine that goes, or why it cannot be known yet. A machine whose node is unknown may have
    /// joined etcd all the same: kubelet may never learn the providerID that its Node is found by.
    pub(crate) fn member_of(&self, going: &ControlPlaneMachine) -> Result<Option<&EtcdMember>, String> {
        if !going.node.is_empty() {
            return Ok(self.etcd.iter().find(|member| member.name == going.node));
        }
        // A node is mostly called like its Machine or infrastructure machine.
        let namesake = |machine: &Machine| {
            let is_called =
                |name: &str| machine.metadata.name == name || machine.spec.infrastructure_ref.name == name;
            self.etcd.iter().find(|member| is_called(&member.name))
        };
        if let Some(member) = namesake(&going.machine) {
            return Ok(Some(member));
        }
        let nodeless =
            self.machines.iter().filter(|other| other.node.is_empty()).map(|other| &*other.machine);
        let others: Vec<&Machine> =
            nodeless.filter(|other| other.metadata.name != going.machine.metadata.name).collect();
        let is_claimed = |member: &EtcdMember| {
            self.machine_of_node(&member.name).is_some()
                || others.iter().any(|other| namesake(other) == Some(member))
        };
        let unclaimed = self.etcd.iter().find(|member| !member.name.is_empty() && !is_claimed(member));
        let Some(member) = unclaimed else { return Ok(None) };
        match others.iter().find(|other| namesake(other).is_none() && !other.metadata.is_deleting()) {
            Some(other) => Err(format!(
                "Machine {} to become a node: etcd member {} may be its own",
                other.metadata.name, member.name
            )),
            // It runs on a machine that goes, or on none.
            None => Ok(Some(member)),
        }
    }
}
