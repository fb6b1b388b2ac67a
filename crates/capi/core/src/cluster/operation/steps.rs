//! The steps of operations on a Cluster.

use capstan_controller::code_in;
use capstan_controller::operation::{Intention, Operation, StepState};

use super::facts::{Facts, Role};

/// Steps and their weights in percent, by typical duration.
const CREATE: [(&str, u32); 8] = [
    ("Validate", 1),
    ("Network", 4),
    ("Endpoint", 2),
    ("ControlPlaneInit", 30),
    ("ControlPlane", 30),
    ("CNI", 5),
    ("Workers", 25),
    ("Ready", 3),
];
const DELETE: [(&str, u32); 3] = [("Workers", 40), ("ControlPlane", 50), ("Network", 10)];
const OTHER: [(&str, u32); 3] = [("ControlPlane", 50), ("Workers", 45), ("Ready", 5)];

/// Longest message, in characters.
const SENTENCE: usize = 240;
/// Progress granularity: thousands of machines must not cause thousands of writes.
const MARKS: u32 = 10;

pub(super) fn begin(intention: Intention, facts: &Facts<'_>) -> Operation {
    let steps: &[(&str, u32)] = match intention {
        Intention::Create => &CREATE,
        Intention::Delete => &DELETE,
        _ => &OTHER,
    };
    let mut operation = Operation::begin(intention, facts.generation, facts.now, steps);
    operation.target.clone_from(&facts.target);
    if !matches!(intention, Intention::Create | Intention::Delete) {
        // Roles without pending changes are skipped.
        for (step, role) in [("ControlPlane", facts.control_plane), ("Workers", facts.workers)] {
            if role.is_whole() {
                operation.skip(step, facts.now);
            }
        }
    }
    operation
}

/// Updates the progress of all steps.
pub(super) fn advance(operation: &mut Operation, facts: &Facts<'_>) {
    let mut at = At { operation, facts };
    match at.operation.intention {
        Intention::Delete => at.delete(),
        Intention::Create => at.create(),
        _ if facts.found => at.other(),
        _ => {}
    }
}

struct At<'a, 'f> {
    operation: &'a mut Operation,
    facts: &'a Facts<'f>,
}

impl At<'_, '_> {
    fn create(&mut self) {
        let facts = self.facts;
        self.whether("Validate", facts.found);
        if !facts.found {
            return;
        }
        self.whether("Network", facts.provisioned);
        if facts.provisioned || facts.has_endpoint {
            self.whether("Endpoint", facts.has_endpoint);
        }
        if facts.has_endpoint || facts.initialized {
            self.whether("ControlPlaneInit", facts.initialized);
        }
        if !facts.initialized {
            return;
        }
        self.role("ControlPlane", facts.control_plane);
        self.role("Workers", facts.workers);
        let machines = facts.control_plane.wanted + facts.workers.wanted;
        if machines == 0 {
            self.operation.skip("CNI", facts.now);
        } else {
            self.whether("CNI", facts.has_network);
        }
        self.ready();
    }

    fn other(&mut self) {
        self.role("ControlPlane", self.facts.control_plane);
        self.role("Workers", self.facts.workers);
        self.ready();
    }

    fn delete(&mut self) {
        let facts = self.facts;
        self.gone("Workers", facts.workers.there);
        if facts.workers.there > 0 {
            return;
        }
        self.gone("ControlPlane", facts.control_plane.there.max(u32::from(!facts.control_plane_is_gone)));
        if facts.control_plane_is_gone && facts.control_plane.there == 0 {
            self.whether("Network", facts.infrastructure_is_gone);
        }
    }

    fn whether(&mut self, step: &str, done: bool) {
        self.operation.progress(step, u32::from(done), 1, self.facts.now);
    }

    fn role(&mut self, step: &str, role: Role) {
        let skipped = self.operation.step(step).is_some_and(|step| step.state == StepState::Skipped);
        let nothing = role.wanted == 0 && role.there == 0;
        if nothing && role.is_whole() && self.operation.intention == Intention::Create {
            self.operation.skip(step, self.facts.now);
        } else if !(skipped && role.is_whole()) {
            // With no replicas the step is done when all machines are gone.
            let (done, of) =
                if role.wanted == 0 { (u32::from(nothing), 1) } else { (role.done(), role.wanted) };
            self.operation.progress(step, marked(done, of), of, self.facts.now);
        }
    }

    /// Counts deleted machines out of the most there were.
    fn gone(&mut self, step: &str, left: u32) {
        let before = self.operation.step(step).map_or(0, |step| step.of);
        let of = before.max(left);
        if of == 0 {
            self.operation.skip(step, self.facts.now);
        } else {
            self.operation.progress(step, marked(of - left, of), of, self.facts.now);
        }
    }

    /// The last step, once all others are done.
    fn ready(&mut self) {
        let over = |state| matches!(state, StepState::Done | StepState::Skipped);
        let mut others = self.operation.steps.iter().filter(|step| step.name != "Ready");
        if others.all(|step| over(step.state)) {
            self.whether("Ready", self.facts.settled);
        }
    }
}

/// Rounds a count down to tenths; only a complete step counts as complete.
fn marked(done: u32, of: u32) -> u32 {
    if done >= of { of } else { done - done % (of / MARKS).max(1) }
}

/// Sets what the current step waits for. Messages change often, so a new message alone is not written: only with
/// another change, or when the reason or error code differs.
pub(super) fn blocked(operation: &mut Operation, held: Option<&Operation>, facts: &Facts<'_>) {
    if operation.is_over() {
        operation.unblock();
        return;
    }
    let step = operation.current().map(|step| step.name.clone()).unwrap_or_default();
    let Some((reason, message)) = facts.complaint(&step) else {
        operation.unblock();
        return;
    };
    let code = code_in(message);
    let same_reason = operation
        .blocked_by
        .as_ref()
        .is_some_and(|before| before.reason == reason && before.code.as_deref() == code);
    if !same_reason || held != Some(&*operation) {
        let short: String = message.chars().take(SENTENCE).collect();
        operation.block(reason, &short, code, facts.now);
    }
}
