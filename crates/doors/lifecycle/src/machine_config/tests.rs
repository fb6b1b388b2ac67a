use std::sync::Arc;

use capstan_capi_core::conditions::ConditionState;
use capstan_controller::Look;
use capstan_object::kstatus::Progress;
use capstan_object::{Condition, ConditionStatus, ObjectMeta, Time, to_value};
use jiff::Timestamp;

use super::{MachineConfigs, User, decide};
use crate::types::{CloudStackMachineConfig, Cluster};

fn cluster(ready: ConditionStatus, reconciled: i64, children: i64) -> Cluster {
    let mut cluster = Cluster { metadata: ObjectMeta::named("default", "one"), ..Cluster::default() };
    cluster.metadata.generation = 2;
    cluster.status.observed_generation = 2;
    cluster.status.reconciled_generation = reconciled;
    cluster.status.children_reconciled_generation = children;
    let ConditionState { status, reason, message } = ConditionState::new(ready, "R", "");
    cluster.status.conditions.push(Condition {
        kind: "Ready".to_owned(),
        status,
        observed_generation: None,
        last_transition_time: Time::new(Timestamp::UNIX_EPOCH),
        reason,
        message,
    });
    cluster
}

#[test]
fn a_config_is_current_when_every_cluster_is_ready_with_it() {
    use ConditionStatus::{False, True};
    let waits = || Progress::InProgress("Cluster default/one is not ready with it".to_owned());
    for (what, users, expected) in [
        ("nobody uses it", vec![], Progress::Current),
        ("taken up", vec![cluster(True, 2, 5)], Progress::Current),
        ("the cluster has seen an earlier generation", vec![cluster(True, 2, 4)], waits()),
        ("applied and rolling", vec![cluster(False, 2, 5)], waits()),
        ("the cluster itself has changed", vec![cluster(True, 1, 5)], waits()),
        ("one of two", vec![cluster(True, 2, 5), cluster(False, 2, 5)], waits()),
    ] {
        let mut config =
            CloudStackMachineConfig { metadata: ObjectMeta::named("default", "all"), ..Default::default() };
        config.metadata.generation = 3;
        let seen =
            users.into_iter().map(|cluster| User { cluster: Arc::new(cluster), generations: 5 }).collect();
        let look = Look::<MachineConfigs>::new(Arc::new(config), seen, Timestamp::UNIX_EPOCH);
        let decided = to_value(&decide::decide(&look).object).expect("an object");
        assert_eq!(Progress::of(&decided), expected, "{what}");
    }
}
