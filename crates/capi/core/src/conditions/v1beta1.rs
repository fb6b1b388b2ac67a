//! v1beta1 conditions for clients that still read them. Each is derived from conditions of the object itself, so it is
//! written together with them.
//!
//! Upstream's controllers still write these beside the new ones. Names and the parts of `Ready` are upstream's,
//! reasons and messages are those of the new conditions.

use capstan_capi_types::core::cluster::condition as cluster;
use capstan_capi_types::core::machine::condition as machine;
use capstan_capi_types::core::machine_pool::condition as machine_pool;
use capstan_capi_types::core::{Deprecated, V1Beta1Condition, condition};
use capstan_object::{Condition, ConditionStatus};

use ConditionStatus::{False, True, Unknown};

/// Maximum length of reason and message in v1beta1.
const LONGEST_REASON: usize = 256;
const LONGEST_MESSAGE: usize = 10_240;

/// A v1beta1 condition and its sources: it is True if all of them are good.
pub struct Row {
    pub old: &'static str,
    /// Types of the source conditions; without any of them it is not written.
    pub from: &'static [&'static str],
    /// The status that counts as good.
    pub good: ConditionStatus,
}

/// The conditions of a kind.
pub struct Table {
    pub rows: &'static [Row],
    /// Parts of `Ready`, most important first.
    pub ready: &'static [&'static str],
}

/// A condition with the same meaning as its source.
pub const fn same(old: &'static str, from: &'static [&'static str]) -> Row {
    Row { old, from, good: True }
}

/// `Resized`: nothing is being added or removed.
pub const RESIZED: Row =
    Row { old: "Resized", from: &[condition::SCALING_UP, condition::SCALING_DOWN], good: False };

/// Conditions of a Cluster.
pub const CLUSTER: Table = Table {
    rows: &[
        same("ControlPlaneInitialized", &[cluster::CONTROL_PLANE_INITIALIZED]),
        same("ControlPlaneReady", &[cluster::CONTROL_PLANE_AVAILABLE]),
        same("InfrastructureReady", &[condition::INFRASTRUCTURE_READY]),
    ],
    ready: &["ControlPlaneReady", "InfrastructureReady"],
};

/// Conditions of a Machine.
pub const MACHINE: Table = Table {
    rows: &[
        same("BootstrapReady", &[condition::BOOTSTRAP_CONFIG_READY]),
        same("HealthCheckSucceeded", &[machine::HEALTH_CHECK_SUCCEEDED]),
        same("InfrastructureReady", &[condition::INFRASTRUCTURE_READY]),
        same("NodeHealthy", &[machine::NODE_HEALTHY]),
        same("OwnerRemediated", &[machine::OWNER_REMEDIATED]),
    ],
    ready: &["InfrastructureReady", "BootstrapReady", "HealthCheckSucceeded", "OwnerRemediated"],
};

/// Conditions of a MachineSet.
pub const MACHINE_SET: Table = Table {
    rows: &[same("MachinesReady", &[condition::MACHINES_READY]), RESIZED],
    ready: &["Resized", "MachinesReady"],
};

/// Conditions of a MachinePool.
pub const MACHINE_POOL: Table = Table {
    rows: &[
        same("BootstrapReady", &[condition::BOOTSTRAP_CONFIG_READY]),
        same("InfrastructureReady", &[condition::INFRASTRUCTURE_READY]),
        same("ReplicasReady", &[machine_pool::REPLICAS_READY]),
    ],
    ready: &["BootstrapReady", "InfrastructureReady", "ReplicasReady"],
};

/// Conditions of a MachineDeployment.
pub const MACHINE_DEPLOYMENT: Table =
    Table { rows: &[same("Available", &[condition::AVAILABLE])], ready: &["Available"] };

/// Writes the v1beta1 conditions. Conditions of other writers are kept.
pub fn write<T: Default>(
    conditions: &[Condition],
    table: &Table,
    deprecated: &mut Option<Deprecated<T>>,
    of: fn(&mut T) -> &mut Vec<V1Beta1Condition>,
) {
    let mut reported: Vec<V1Beta1Condition> =
        table.rows.iter().filter_map(|row| follow(conditions, row)).collect();
    reported.extend(ready(&reported, table.ready));
    if reported.is_empty() && deprecated.is_none() {
        return;
    }
    let old = of(deprecated.get_or_insert_default().v1beta1.get_or_insert_default());
    let ours = |kind: &str| kind == condition::READY || table.rows.iter().any(|row| row.old == kind);
    old.retain(|one| !ours(&one.kind));
    old.append(&mut reported);
    old.sort_by(|a, b| (a.kind != condition::READY, &a.kind).cmp(&(b.kind != condition::READY, &b.kind)));
}

fn follow(conditions: &[Condition], row: &Row) -> Option<V1Beta1Condition> {
    let sources: Vec<&Condition> =
        row.from.iter().filter_map(|kind| conditions.iter().find(|one| one.kind == *kind)).collect();
    let last = sources.iter().map(|source| source.last_transition_time).max()?;
    let bad = |status: ConditionStatus| {
        sources.iter().find(move |source| {
            source.status != row.good && (source.status == Unknown) == (status == Unknown)
        })
    };
    let (status, source) = match (bad(False), bad(Unknown)) {
        (Some(source), _) => (False, source),
        (None, Some(source)) => (Unknown, source),
        (None, None) => {
            return Some(V1Beta1Condition {
                kind: row.old.to_owned(),
                status: word(True).to_owned(),
                last_transition_time: Some(last),
                ..V1Beta1Condition::default()
            });
        }
    };
    Some(V1Beta1Condition {
        kind: row.old.to_owned(),
        status: word(status).to_owned(),
        severity: if status == False { severity(&source.reason).to_owned() } else { String::new() },
        last_transition_time: Some(source.last_transition_time),
        reason: source.reason.chars().take(LONGEST_REASON).collect(),
        message: source.message.chars().take(LONGEST_MESSAGE).collect(),
    })
}

fn word(status: ConditionStatus) -> &'static str {
    match status {
        True => "True",
        False => "False",
        Unknown => "Unknown",
    }
}

/// The severity of a False condition; waiting is only info.
fn severity(reason: &str) -> &'static str {
    let in_time = ["Waiting", "Provisioning", "Booting", "Creating", "Scaling", "Deleting", "NotInitialized"];
    if in_time.iter().any(|begin| reason.starts_with(begin)) { "Info" } else { "Warning" }
}

/// The summary: the first False, else the first Unknown, else True.
fn ready(reported: &[V1Beta1Condition], of: &[&str]) -> Option<V1Beta1Condition> {
    let parts: Vec<&V1Beta1Condition> =
        of.iter().filter_map(|kind| reported.iter().find(|one| one.kind == *kind)).collect();
    let with = |status: ConditionStatus| parts.iter().find(move |one| one.status == word(status));
    let deciding = with(False).or_else(|| with(Unknown)).copied();
    let deciding = deciding.or_else(|| parts.iter().copied().max_by_key(|one| one.last_transition_time))?;
    Some(V1Beta1Condition { kind: condition::READY.to_owned(), ..deciding.clone() })
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::ClusterV1Beta1DeprecatedStatus;

    use super::*;
    use crate::testing::condition as reported;

    fn written(conditions: &[Condition], table: &Table) -> Vec<(String, String, String, String)> {
        let mut deprecated: Option<Deprecated<ClusterV1Beta1DeprecatedStatus>> = None;
        write(conditions, table, &mut deprecated, |old| &mut old.conditions);
        let old = deprecated.and_then(|deprecated| deprecated.v1beta1).unwrap_or_default().conditions;
        old.into_iter().map(|one| (one.kind, one.status, one.severity, one.reason)).collect()
    }

    fn row(kind: &str, status: &str, severity: &str, reason: &str) -> (String, String, String, String) {
        (kind.to_owned(), status.to_owned(), severity.to_owned(), reason.to_owned())
    }

    #[test]
    fn ready_reports_the_first_failure() {
        let infrastructure =
            |status: &str, reason: &str| reported("InfrastructureReady", status, reason, "why");
        let plane = reported("ControlPlaneAvailable", "True", "Available", "");
        assert_eq!(
            written(&[infrastructure("True", "Ready"), plane.clone()], &CLUSTER),
            [
                row("Ready", "True", "", ""),
                row("ControlPlaneReady", "True", "", ""),
                row("InfrastructureReady", "True", "", ""),
            ]
        );
        for (status, reason, severity) in [
            ("False", "WaitingForIt", "Info"),
            ("False", "Broken", "Warning"),
            ("Unknown", "InternalError", ""),
        ] {
            assert_eq!(
                written(&[infrastructure(status, reason), plane.clone()], &CLUSTER),
                [
                    row("Ready", status, severity, reason),
                    row("ControlPlaneReady", "True", "", ""),
                    row("InfrastructureReady", status, severity, reason),
                ]
            );
        }
    }

    #[test]
    fn a_set_that_grows_is_not_resized() {
        let ready = reported("MachinesReady", "True", "Ready", "");
        let still = reported("ScalingDown", "False", "NotScalingDown", "");
        let grows = reported("ScalingUp", "True", "ScalingUp", "");
        assert_eq!(
            written(&[ready, still, grows], &MACHINE_SET),
            [
                row("Ready", "False", "Info", "ScalingUp"),
                row("MachinesReady", "True", "", ""),
                row("Resized", "False", "Info", "ScalingUp"),
            ]
        );
    }

    #[test]
    fn foreign_conditions_stay_and_missing_sources_write_nothing() {
        assert_eq!(written(&[], &CLUSTER), []);
        let foreign =
            V1Beta1Condition { kind: "TopologyReconciled".to_owned(), ..V1Beta1Condition::default() };
        let old = ClusterV1Beta1DeprecatedStatus { conditions: vec![foreign], ..Default::default() };
        let mut deprecated = Some(Deprecated { v1beta1: Some(old) });
        let conditions = [reported("InfrastructureReady", "True", "Ready", "")];
        for _ in 0..2 {
            write(&conditions, &CLUSTER, &mut deprecated, |old| &mut old.conditions);
            let old =
                deprecated.clone().and_then(|deprecated| deprecated.v1beta1).expect("a status").conditions;
            let kinds: Vec<_> = old.iter().map(|one| one.kind.as_str()).collect();
            assert_eq!(kinds, ["Ready", "InfrastructureReady", "TopologyReconciled"]);
        }
    }
}
