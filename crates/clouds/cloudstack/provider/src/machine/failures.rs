//! Orders, deployments and calls that failed: as the object records them, and as they are remembered.

use capstan_controller::{Call, Failure, Look};
use capstan_object::ObjectMeta;
use capstan_provider_kit::retry::{FailedTry as Refusal, ORDERS as PAUSES};
use jiff::Timestamp;

use super::{CloudStackMachines, MachineCall};
use crate::annotation;

/// The last deployment that failed.
pub(super) fn failed_deployment(meta: &ObjectMeta) -> Option<Refusal> {
    Refusal::of(meta, annotation::DEPLOY_FAILED)
}

/// The last order that was refused.
pub(super) fn refused_order(meta: &ObjectMeta) -> Option<Refusal> {
    Refusal::of(meta, annotation::ORDER_REFUSED)
}

/// The next order is not due yet.
pub(super) fn is_pausing(meta: &ObjectMeta, now: Timestamp) -> bool {
    [failed_deployment(meta), refused_order(meta)].iter().flatten().any(|last| now < last.next(PAUSES))
}

/// The failure of a call, whatever its details were at the last try.
pub(super) fn failure_of<'a>(
    look: &'a Look<CloudStackMachines>,
    call: &MachineCall,
) -> Option<&'a Failure<MachineCall>> {
    let effect = call.summary();
    look.failures.iter().find(|failure| failure.effect == effect)
}
