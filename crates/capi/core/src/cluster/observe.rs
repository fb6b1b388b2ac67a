//! Reads what a decision about a Cluster depends on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{Health, ObserveError, View};
use capstan_object::Object;

use super::observed::Observed;
use crate::contract::look_up;

pub(super) async fn observe(cluster: &Arc<Cluster>, view: &View) -> Result<Observed, ObserveError> {
    let meta = &cluster.metadata;
    let key = cluster.key();
    let machines = view.labelled::<Machine>(&meta.namespace, label::CLUSTER_NAME, &meta.name)?;
    let (control_plane_machines, worker_machines) =
        machines.into_iter().partition(|machine| machine.metadata.labels.contains_key(label::CONTROL_PLANE));
    let mut health = Health::default();
    if let Some(workloads) = view.workloads() {
        // Getting the client probes the cluster and updates its health.
        if cluster.spec.control_plane_endpoint.is_valid() && !meta.is_deleting() {
            drop(workloads.client(&key).await);
        }
        health = workloads.health(&key);
    }
    Ok(Observed {
        infrastructure: look_up(view, &cluster.spec.infrastructure_ref, &meta.namespace).await?,
        control_plane: look_up(view, &cluster.spec.control_plane_ref, &meta.namespace).await?,
        deployments: view.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name)?,
        sets: view.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name)?,
        pools: view.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name)?,
        control_plane_machines,
        worker_machines,
        health,
    })
}
