//! Lifecycles in which requests to the cloud fail: one of every so many, each in another way.

use capstan_sim_openstack::{Fault, Simulator, Target};

use crate::lifecycles;
use crate::story::Script;

/// What services answer. 401 is also what they answer with a token that expired or was revoked.
pub const STATUSES: [u16; 8] = [401, 403, 404, 409, 413, 429, 500, 503];

/// Which requests of a life fail.
#[derive(Debug, Clone, Copy)]
pub struct Errors {
    /// So many requests pass first.
    pub first: u32,
    /// Of so many requests after it one fails.
    pub every: u32,
    /// Which status is the first.
    pub turn: usize,
}

/// More requests than a life has.
const MOST: u32 = 2_000;

impl Errors {
    pub fn inject(self, simulator: &Simulator) {
        let numbers = (self.first..MOST).step_by(usize::try_from(self.every.max(1)).unwrap_or(1));
        for (after, turn) in numbers.zip(self.turn..) {
            let status = STATUSES[turn % STATUSES.len()];
            let on = Target { after, times: Some(1), ..Target::default() };
            let message = String::new();
            // A service that says that what is to be deleted is not there would be believed, and rightly so.
            let faults = match status {
                404 => ["GET", "POST", "PUT"].map(|it| Some(it.to_owned())).to_vec(),
                _ => vec![None],
            };
            for method in faults {
                let on = Target { method, ..on.clone() };
                let fault = Fault::Error { on, status, message: message.clone() };
                simulator.inject(fault).expect("no server is named");
            }
        }
    }
}

/// The lifecycle with these errors.
pub fn with(errors: Errors) -> Script {
    Script { errors: Some(errors), ..lifecycles::brief() }
}

#[test]
fn every_class_of_errors_at_any_request_leads_to_the_same_cluster_and_to_nothing_left() {
    for errors in [Errors { first: 3, every: 9, turn: 0 }, Errors { first: 7, every: 13, turn: 4 }] {
        let report = capstan_harness::run(&with(errors), 1, &[]);
        assert!(report.violation.is_none(), "{errors:?}: {}", report.transcript());
    }
}
