//! Replica counts of a cluster.

use std::sync::Arc;

use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{ClusterReplicas, ClusterStatus, Machine, StatusVersion, condition};
use capstan_controller::Look;
use capstan_object::Conditions;

use super::ClusterController;
use super::observed::{has_topology, is_owned};
use crate::contract::ControlPlane;
use crate::machines;

pub(super) fn count(look: &Look<ClusterController>, status: &mut ClusterStatus) {
    control_plane(look, status.control_plane.get_or_insert_default());
    let counted = workers(look);
    let before = status.workers.take().unwrap_or_default();
    status.workers = Some(ClusterReplicas { upgrade_plan: before.upgrade_plan, ..counted });
}

/// From the control plane object; fields that it does not report stay unset.
fn control_plane(look: &Look<ClusterController>, replicas: &mut ClusterReplicas) {
    let cluster = &look.object;
    if cluster.spec.control_plane_ref.kind.is_empty() && !has_topology(cluster) {
        let mut sum = Sum::default();
        for machine in &look.seen.control_plane_machines {
            sum.machine(machine);
        }
        let upgrade_plan = std::mem::take(&mut replicas.upgrade_plan);
        *replicas = ClusterReplicas { upgrade_plan, ..sum.done() };
        return;
    }
    let Some(object) = look.seen.control_plane.object() else {
        let upgrade_plan = std::mem::take(&mut replicas.upgrade_plan);
        *replicas = ClusterReplicas { upgrade_plan, ..ClusterReplicas::default() };
        return;
    };
    let contract = ControlPlane(object);
    for (target, reported) in [
        (&mut replicas.desired_replicas, contract.desired_replicas()),
        (&mut replicas.replicas, contract.replicas()),
        (&mut replicas.ready_replicas, contract.ready_replicas()),
        (&mut replicas.available_replicas, contract.available_replicas()),
        (&mut replicas.up_to_date_replicas, contract.up_to_date_replicas()),
    ] {
        if let Ok(Some(count)) = reported {
            *target = Some(count);
        }
    }
    if let Ok(versions) = contract.versions() {
        replicas.versions = versions.unwrap_or_default();
    }
}

fn workers(look: &Look<ClusterController>) -> ClusterReplicas {
    let cluster = &look.object;
    let mut sum = Sum::default();
    for deployment in &look.seen.deployments {
        let status = &deployment.status;
        sum.group(
            [
                deployment.spec.replicas,
                status.replicas,
                status.ready_replicas,
                status.available_replicas,
                status.up_to_date_replicas,
            ],
            &status.versions,
        );
    }
    for set in look.seen.sets.iter().filter(|set| is_owned(cluster, &set.metadata.owner_references)) {
        let status = &set.status;
        sum.group(
            [
                set.spec.replicas,
                status.replicas,
                status.ready_replicas,
                status.available_replicas,
                status.up_to_date_replicas,
            ],
            &status.versions,
        );
    }
    for pool in &look.seen.pools {
        let status = &pool.status;
        sum.group(
            [
                pool.spec.replicas,
                status.replicas,
                status.ready_replicas,
                status.available_replicas,
                status.up_to_date_replicas,
            ],
            &status.versions,
        );
    }
    let alone = look
        .seen
        .worker_machines
        .iter()
        .filter(|machine| is_owned(cluster, &machine.metadata.owner_references));
    for machine in alone {
        sum.machine(machine);
    }
    sum.done()
}

/// Counts: desired, existing, ready, available, up to date. `None` if not reported.
#[derive(Default)]
struct Sum {
    counts: [Option<i32>; 5],
    versions: Vec<StatusVersion>,
}

impl Sum {
    fn group(&mut self, counts: [Option<i32>; 5], versions: &[StatusVersion]) {
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            if let Some(count) = count {
                *sum = Some(sum.unwrap_or(0) + count);
            }
        }
        self.versions.extend_from_slice(versions);
    }

    /// A standalone machine counts as one desired replica.
    fn machine(&mut self, machine: &Arc<Machine>) {
        let is = |kind| machine.status.conditions.is_condition_true(kind).then_some(1);
        let counts = [
            Some(1),
            Some(1),
            is(condition::READY),
            is(condition::AVAILABLE),
            is(machine_condition::UP_TO_DATE),
        ];
        self.group(counts, &machines::versions([machine]));
    }

    fn done(self) -> ClusterReplicas {
        let [desired_replicas, replicas, ready_replicas, available_replicas, up_to_date_replicas] =
            self.counts;
        ClusterReplicas {
            desired_replicas,
            replicas,
            up_to_date_replicas,
            ready_replicas,
            available_replicas,
            versions: machines::added_versions(self.versions),
            upgrade_plan: Vec::new(),
        }
    }
}
