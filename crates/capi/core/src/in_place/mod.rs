//! Machines that an extension server updates in place, instead of their being replaced.
//!
//! ```text
//! MachineDeployment, control plane ── CanUpdateMachineSet, CanUpdateMachine ──▶ patches: do they cover the change?
//!     yes: infrastructure machine, bootstrap config and Machine get the new spec and the mark `update-in-progress`,
//!          the Machine last the pending hook
//! Machine ── UpdateMachine, until the server reports that it is done ──▶ marks and pending hook are removed
//! ```
//!
//! Without a server that has these hooks, machines are replaced. [`Updater`] is implemented by the crate that calls
//! servers, which builds on this one.

mod change;
mod coverage;
mod updater;

use capstan_capi_types::core::{Machine, annotation};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::PendingHooks;
use capstan_object::ObjectMeta;

pub use change::{changed_object, to_template};
pub use coverage::{Part, Question, sent};
pub use updater::{AskError, Asking, Failure, Progress, Updater};

/// The object has the mark of an update in place.
pub fn is_marked(meta: &ObjectMeta) -> bool {
    meta.annotations.contains_key(annotation::UPDATE_IN_PROGRESS)
}

/// The server is to be asked about the machine until it is done.
pub fn is_pending(machine: &Machine) -> bool {
    PendingHooks::of(&machine.metadata.annotations).contains(Hook::UpdateMachine)
}

/// The machine is being updated in place, or about to start or finish.
pub fn is_updating(machine: &Machine) -> bool {
    is_marked(&machine.metadata) || is_pending(machine)
}

/// The update of the machine has to begin: its objects and itself do not have their new spec yet.
pub fn begins(machine: &Machine) -> bool {
    is_marked(&machine.metadata) && !is_pending(machine) && !machine.metadata.is_deleting()
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::runtime::pending::PENDING_HOOKS;

    use super::*;
    use crate::testing::machine;

    #[test]
    fn an_update_in_place_shows_in_either_annotation() {
        for (key, value, expected) in [
            (annotation::UPDATE_IN_PROGRESS, "", true),
            (PENDING_HOOKS, "Other,UpdateMachine", true),
            (PENDING_HOOKS, "Other", false),
            ("other", "", false),
        ] {
            let mut machine = machine("m");
            machine.metadata.annotations.insert(key.to_owned(), value.to_owned());
            assert_eq!(is_updating(&machine), expected, "{key}={value}");
        }
    }
}
