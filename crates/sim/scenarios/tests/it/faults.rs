//! Scenarios with one fault each, at an arbitrary effect. `cargo xtask simulate --all` tests every effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_harness::{Fault, FaultPlan, run_with};
use capstan_scenarios::named;

/// Injects one fault, at the `nth` effect after faults are enabled.
struct Once {
    fault: fn(usize) -> Fault,
    nth: usize,
    exposed: AtomicUsize,
}

const NOT_YET: usize = usize::MAX;

impl FaultPlan for Once {
    fn faults_at(&self, effect: usize) -> Vec<Fault> {
        // Enabled since the last effect: this one is the first.
        let _ = self.exposed.compare_exchange(NOT_YET - 1, effect, Ordering::Relaxed, Ordering::Relaxed);
        match self.exposed.load(Ordering::Relaxed) {
            first if first < NOT_YET - 1 && effect == first + self.nth => vec![(self.fault)(effect)],
            _ => Vec::new(),
        }
    }

    fn enabled(&self) {
        self.exposed.store(NOT_YET - 1, Ordering::Relaxed);
    }
}

fn survives(scenario: &str, fault: fn(usize) -> Fault, nth: usize) {
    let scenario = named(scenario).expect("a scenario");
    let once = Once { fault, nth, exposed: AtomicUsize::new(NOT_YET) };
    let report = run_with(&scenario, 1, Arc::new(once));
    assert!(report.violation.is_none(), "{}", report.transcript());
    let text = report.trace.text();
    assert!(
        text.contains("CRASH at") || text.contains("RESPONSE LOST"),
        "{} has fewer effects",
        scenario.name
    );
}

macro_rules! survives {
    ($($claim:ident: $scenario:literal, $fault:ident, $nth:literal;)*) => {$(
        #[test]
        fn $claim() {
            survives($scenario, Fault::$fault, $nth);
        }
    )*};
}

// The cheapest ones: `cargo xtask simulate` tests all other effects.
survives! {
    a_crash_while_a_cluster_is_initialized_is_survived: "small", CrashAfter, 97;
    a_response_lost_while_a_cluster_is_initialized_is_survived: "small", LoseReply, 61;
    a_response_lost_while_a_cluster_is_deleted_is_survived: "small", LoseReply, 220;
    a_crash_while_a_cluster_is_created_is_survived: "bare", CrashAfter, 71;
    a_response_lost_while_workers_are_added_is_survived: "bare", LoseReply, 150;
    a_crash_while_a_topology_is_created_is_survived: "class-bare", CrashAfter, 12;
    a_later_crash_while_a_topology_is_created_is_survived: "class-bare", CrashAfter, 16;
    a_response_lost_while_a_topology_is_created_is_survived: "class-bare", LoseReply, 14;
    a_crash_while_a_worker_is_replaced_is_survived: "heal-worker", CrashAfter, 14;
    a_response_lost_while_a_worker_is_replaced_is_survived: "heal-worker", LoseReply, 34;
}
