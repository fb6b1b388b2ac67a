//! The steps of operations on a Cluster.

use capstan_controller::code_in;
use capstan_controller::operation::{Intention, Operation, StepState};

use super::progress::{ClusterProgress, Role};

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

/// Maximum message length, in characters.
const SENTENCE: usize = 240;
/// Progress granularity: thousands of machines must not cause thousands of writes.
const MARKS: u32 = 10;

pub(super) fn begin(intention: Intention, progress: &ClusterProgress<'_>) -> Operation {
    let steps: &[(&str, u32)] = match intention {
        Intention::Create => &CREATE,
        Intention::Delete => &DELETE,
        _ => &OTHER,
    };
    let mut operation = Operation::begin(intention, progress.generation, progress.now, steps);
    operation.target.clone_from(&progress.target);
    if !matches!(intention, Intention::Create | Intention::Delete) {
        // Roles without pending changes are skipped.
        for (step, role) in [("ControlPlane", progress.control_plane), ("Workers", progress.workers)] {
            if role.is_complete() {
                operation.skip(step, progress.now);
            }
        }
    }
    operation
}

/// Updates the progress of all steps.
pub(super) fn advance(operation: &mut Operation, progress: &ClusterProgress<'_>) {
    let mut at = StepUpdate { operation, progress };
    match at.operation.intention {
        Intention::Delete => at.delete(),
        Intention::Create => at.create(),
        _ if progress.found => at.other(),
        _ => {}
    }
}

struct StepUpdate<'a, 'f> {
    operation: &'a mut Operation,
    progress: &'a ClusterProgress<'f>,
}

impl StepUpdate<'_, '_> {
    fn create(&mut self) {
        let progress = self.progress;
        self.set("Validate", progress.found);
        if !progress.found {
            return;
        }
        self.set("Network", progress.provisioned);
        if progress.provisioned || progress.has_endpoint {
            self.set("Endpoint", progress.has_endpoint);
        }
        if progress.has_endpoint || progress.initialized {
            self.set("ControlPlaneInit", progress.initialized);
        }
        if !progress.initialized {
            return;
        }
        self.role("ControlPlane", progress.control_plane);
        self.role("Workers", progress.workers);
        let machines = progress.control_plane.wanted + progress.workers.wanted;
        if machines == 0 {
            self.operation.skip("CNI", progress.now);
        } else {
            self.set("CNI", progress.has_network);
        }
        self.ready();
    }

    fn other(&mut self) {
        self.role("ControlPlane", self.progress.control_plane);
        self.role("Workers", self.progress.workers);
        self.ready();
    }

    fn delete(&mut self) {
        let progress = self.progress;
        self.gone("Workers", progress.workers.present);
        if progress.workers.present > 0 {
            return;
        }
        self.gone(
            "ControlPlane",
            progress.control_plane.present.max(u32::from(!progress.control_plane_is_gone)),
        );
        if progress.control_plane_is_gone && progress.control_plane.present == 0 {
            self.set("Network", progress.infrastructure_is_gone);
        }
    }

    fn set(&mut self, step: &str, done: bool) {
        self.operation.progress(step, u32::from(done), 1, self.progress.now);
    }

    fn role(&mut self, step: &str, role: Role) {
        let skipped = self.operation.step(step).is_some_and(|step| step.state == StepState::Skipped);
        let nothing = role.wanted == 0 && role.present == 0;
        if nothing && role.is_complete() && self.operation.intention == Intention::Create {
            self.operation.skip(step, self.progress.now);
        } else if !(skipped && role.is_complete()) {
            // With no replicas the step is done when all machines are gone.
            let (done, of) =
                if role.wanted == 0 { (u32::from(nothing), 1) } else { (role.done(), role.wanted) };
            self.operation.progress(step, marked(done, of), of, self.progress.now);
        }
    }

    /// Counts deleted machines out of the most there were.
    fn gone(&mut self, step: &str, left: u32) {
        let before = self.operation.step(step).map_or(0, |step| step.of);
        let of = before.max(left);
        if of == 0 {
            self.operation.skip(step, self.progress.now);
        } else {
            self.operation.progress(step, marked(of - left, of), of, self.progress.now);
        }
    }

    /// The last step, once all others are done.
    fn ready(&mut self) {
        let over = |state| matches!(state, StepState::Done | StepState::Skipped);
        let mut others = self.operation.steps.iter().filter(|step| step.name != "Ready");
        if others.all(|step| over(step.state)) {
            self.set("Ready", self.progress.settled);
        }
    }
}

/// Rounds a count down to tenths; only a complete step counts as complete.
fn marked(done: u32, of: u32) -> u32 {
    if done >= of { of } else { done - done % (of / MARKS).max(1) }
}

/// Sets what the current step waits for. Messages change often, so a new message alone is not written: only with
/// another change, or when the reason or error code differs.
pub(super) fn blocked(operation: &mut Operation, held: Option<&Operation>, progress: &ClusterProgress<'_>) {
    if operation.is_over() {
        operation.unblock();
        return;
    }
    let step = operation.current().map(|step| step.name.clone()).unwrap_or_default();
    let Some((reason, message)) = progress.blocked_reason(&step) else {
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
        operation.block(reason, &short, code, progress.now);
    }
}
