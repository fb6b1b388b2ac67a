//! The order of an object's conditions.

use capstan_object::Condition;

/// The empty entry stands for all other types.
const ORDER: [&str; 38] = [
    "Available",
    "Ready",
    "UpToDate",
    "RemoteConnectionProbe",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "CertificatesAvailable",
    "Initialized",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
    "NodeHealthy",
    "NodeReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "TopologyReconciled",
    "Updating",
    "RollingOut",
    "Remediating",
    "ScalingDown",
    "ScalingUp",
    "MachinesReady",
    "ControlPlaneMachinesReady",
    "WorkerMachinesReady",
    "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate",
    "WorkerMachinesUpToDate",
    "",
    "Paused",
    "Deleting",
];

fn position(kind: &str) -> usize {
    let named = ORDER.iter().position(|known| *known == kind);
    named.or_else(|| ORDER.iter().position(|known| known.is_empty())).unwrap_or(ORDER.len())
}

pub fn sort(conditions: &mut [Condition]) {
    conditions.sort_by(|a, b| position(&a.kind).cmp(&position(&b.kind)).then_with(|| a.kind.cmp(&b.kind)));
}
