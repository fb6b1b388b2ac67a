//! Control planes for unit tests of single rules.

use std::sync::Arc;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine};

use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState, EtcdMember};
use crate::testing::{now, object};

pub fn control_plane(replicas: i32, rest: &str) -> KubeadmControlPlane {
    object(&format!(
        "
metadata: {{name: blue, namespace: fleet, uid: kcp-uid}}
spec:
  replicas: {replicas}
  version: v1.34.1
  machineTemplate: {{spec: {{infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: SimMachineTemplate, name: cp}}}}}}
{rest}
status:
  initialization: {{controlPlaneInitialized: true}}
  conditions: [{{type: CertificatesAvailable, status: 'True', reason: Available, lastTransitionTime: '2026-01-01T00:00:00Z'}}]
"
    ))
}

/// A healthy machine, `m<n>` on node `n<n>`, the lower the older.
pub fn machine(n: u32) -> Machine {
    let conditions: Vec<String> = [
        "APIServerPodHealthy",
        "ControllerManagerPodHealthy",
        "SchedulerPodHealthy",
        "EtcdPodHealthy",
        "EtcdMemberHealthy",
        "NodeKubeadmLabelsAndTaintsSet",
    ]
    .iter()
    .map(|kind| condition(kind, "True"))
    .collect();
    object(&format!(
        "
metadata: {{name: m{n}, namespace: fleet, creationTimestamp: '2026-11-0{n}T00:00:00Z'}}
spec: {{clusterName: blue, version: v1.34.1, infrastructureRef: {{kind: SimMachine}}}}
status: {{nodeRef: {{name: n{n}}}, conditions: [{}]}}
",
        conditions.join(", ")
    ))
}

pub fn condition(kind: &str, status: &str) -> String {
    format!("{{type: {kind}, status: '{status}', reason: x, lastTransitionTime: '2026-01-01T00:00:00Z'}}")
}

pub fn set(machine: &mut Machine, kind: &str, status: &str) {
    use capstan_object::Conditions;
    machine.status.conditions.set_condition(object(&condition(kind, status)));
}

pub fn broken(n: u32) -> Machine {
    let mut machine = machine(n);
    for kind in ["HealthCheckSucceeded", "OwnerRemediated", "EtcdMemberHealthy", "APIServerPodHealthy"] {
        set(&mut machine, kind, "False");
    }
    machine
}

pub fn plane(control_plane: KubeadmControlPlane, machines: Vec<Machine>) -> ControlPlaneState {
    let member = |machine: &Machine| EtcdMember {
        name: machine.status.node_ref.name.clone(),
        ..EtcdMember::default()
    };
    let etcd = machines.iter().filter(|m| !m.status.node_ref.name.is_empty()).map(member).collect();
    let machines = machines
        .into_iter()
        .map(|machine| {
            let node = machine.status.node_ref.name.clone();
            ControlPlaneMachine { machine: Arc::new(machine), config: None, origin: None, node }
        })
        .collect();
    ControlPlaneState {
        control_plane: Arc::new(control_plane),
        cluster: Arc::new(Cluster::default()),
        machines,
        etcd,
        now: now(),
    }
}

pub fn healthy(replicas: i32, machines: u32) -> ControlPlaneState {
    plane(control_plane(replicas, ""), (1..=machines).map(machine).collect())
}
