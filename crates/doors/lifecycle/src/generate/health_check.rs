//! MachineHealthChecks.

use capstan_capi_types::conversion::duration::to_seconds;
use capstan_capi_types::core::{MachineHealthCheck, UnhealthyNodeCondition, label};
use capstan_object::IntOrString;

use super::{cluster_name, metadata};
use crate::names;
use crate::types::{Cluster, MachineHealthCheckConfiguration, WorkerNodeGroupConfiguration};

/// How long a machine may take to become a node.
const STARTUP: i32 = 600;
/// How long a node may be unhealthy.
const UNHEALTHY: i32 = 300;
/// How many machines of the control plane may be unhealthy for one to be replaced.
const MAX_UNHEALTHY: &str = "100%";
/// The same of a worker group, so that the loss of a network does not replace a whole group.
const MAX_UNHEALTHY_WORKERS: &str = "40%";

pub(super) fn of_control_plane(cluster: &Cluster) -> MachineHealthCheck {
    let own = cluster.spec.control_plane_configuration.machine_health_check.as_ref();
    let name = names::control_plane_health_check(cluster_name(cluster));
    check(cluster, &name, own, (label::CONTROL_PLANE, String::new()), MAX_UNHEALTHY)
}

pub(super) fn of_group(cluster: &Cluster, group: &WorkerNodeGroupConfiguration) -> MachineHealthCheck {
    let name = names::worker_health_check(cluster_name(cluster), &group.name);
    let deployment = names::deployment(cluster_name(cluster), &group.name);
    let own = group.machine_health_check.as_ref();
    check(cluster, &name, own, (label::DEPLOYMENT_NAME, deployment), MAX_UNHEALTHY_WORKERS)
}

/// A setting of the group, else of the cluster, else ours.
fn check(
    cluster: &Cluster,
    name: &str,
    own: Option<&MachineHealthCheckConfiguration>,
    (label, value): (&str, String),
    max_unhealthy: &str,
) -> MachineHealthCheck {
    let settings: Vec<_> = own.into_iter().chain(&cluster.spec.machine_health_check).collect();
    let seconds = |of: fn(&MachineHealthCheckConfiguration) -> Option<&String>, otherwise: i32| {
        settings.iter().find_map(|it| to_seconds(of(it)?)).unwrap_or(otherwise)
    };
    let unhealthy = seconds(|it| it.unhealthy_machine_timeout.as_ref(), UNHEALTHY);
    let most = settings.iter().find_map(|it| it.max_unhealthy.clone());
    let mut check = MachineHealthCheck { metadata: metadata(cluster, name), ..MachineHealthCheck::default() };
    check.spec.cluster_name = cluster_name(cluster).to_owned();
    check.spec.selector.match_labels.insert(label.to_owned(), value);
    check.spec.checks.node_startup_timeout_seconds =
        Some(seconds(|it| it.node_startup_timeout.as_ref(), STARTUP));
    check.spec.checks.unhealthy_node_conditions = ["Unknown", "False"]
        .into_iter()
        .map(|status| UnhealthyNodeCondition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            timeout_seconds: Some(unhealthy),
        })
        .collect();
    check.spec.remediation.trigger_if.unhealthy_less_than_or_equal_to =
        Some(most.unwrap_or_else(|| IntOrString::String(max_unhealthy.to_owned())));
    check
}
