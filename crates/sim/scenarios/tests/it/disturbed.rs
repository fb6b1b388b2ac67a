//! Stories that are disturbed: one misfortune each, at an effect that chance chose. `cargo xtask simulate --all` tries
//! every one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_harness::{Fault, Misfortune, run_with};
use capstan_scenarios::named;

/// Strikes once, at the `nth` effect that the story exposes.
struct Once {
    fault: fn(usize) -> Fault,
    nth: usize,
    exposed: AtomicUsize,
}

/// Nothing is exposed yet.
const NOT_YET: usize = usize::MAX;

impl Misfortune for Once {
    fn strike(&self, effect: usize) -> Vec<Fault> {
        // Exposed since the last effect: this one is the first.
        let _ = self.exposed.compare_exchange(NOT_YET - 1, effect, Ordering::Relaxed, Ordering::Relaxed);
        match self.exposed.load(Ordering::Relaxed) {
            first if first < NOT_YET - 1 && effect == first + self.nth => vec![(self.fault)(effect)],
            _ => Vec::new(),
        }
    }

    fn exposed(&self) {
        self.exposed.store(NOT_YET - 1, Ordering::Relaxed);
    }
}

fn survives(story: &str, fault: fn(usize) -> Fault, nth: usize) {
    let story = named(story).expect("a story");
    let once = Once { fault, nth, exposed: AtomicUsize::new(NOT_YET) };
    let report = run_with(&story, 1, Arc::new(once));
    assert!(report.violation.is_none(), "{}", report.story());
    let text = report.trace.text();
    assert!(text.contains("CRASH at") || text.contains("ANSWER LOST"), "{} has fewer effects", story.name);
}

macro_rules! survives {
    ($($claim:ident: $story:literal, $fault:ident, $nth:literal;)*) => {$(
        #[test]
        fn $claim() {
            survives($story, Fault::$fault, $nth);
        }
    )*};
}

// The cheapest ones: every other point of every story takes `cargo xtask simulate`.
survives! {
    a_crash_while_a_cluster_is_founded_is_survived: "small", CrashAfter, 97;
    an_answer_lost_while_a_cluster_is_founded_is_survived: "small", LoseReply, 61;
    an_answer_lost_while_a_cluster_goes_is_survived: "small", LoseReply, 220;
    a_crash_while_a_cluster_comes_is_survived: "bare", CrashAfter, 71;
    an_answer_lost_while_workers_are_added_is_survived: "bare", LoseReply, 150;
    a_crash_while_a_worker_is_replaced_is_survived: "heal-worker", CrashAfter, 14;
    an_answer_lost_while_a_worker_is_replaced_is_survived: "heal-worker", LoseReply, 34;
}
