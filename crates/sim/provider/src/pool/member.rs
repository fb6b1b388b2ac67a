//! What a pool reads of the Machine of a member.

use capstan_capi_core::machines::is_to_be_remediated;
use capstan_capi_types::core::{Machine, annotation, condition};
use capstan_object::Conditions;

/// The Machine's node is ready.
pub(super) fn is_ready(machine: &Machine) -> bool {
    machine.status.conditions.is_condition_true(condition::READY)
}

/// Somebody wants exactly this machine to go: a health check, or a user by annotation.
pub(super) fn is_unwanted(machine: &Machine) -> bool {
    is_to_be_remediated(machine) || machine.metadata.annotations.contains_key(annotation::DELETE_MACHINE)
}
