//! What virtual machines are called. CloudStack keeps the host name of a machine that failed or was destroyed until it
//! expunges it, a day or two later, and an ordinary account cannot have that done sooner. So every order that follows a
//! failure has another name, and none is used twice: the number is on the object before the order is sent.

use capstan_capi_types::core::Machine;
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_object::ObjectMeta;

use super::failures::failed_deployment;
use crate::annotation;

/// Longest host name.
const LONGEST: usize = 63;

/// Orders of the object that came to nothing: the number of the one that is under way or next.
pub(crate) fn attempt(meta: &ObjectMeta) -> u32 {
    let recorded = meta.annotations.get(annotation::ORDERS).and_then(|text| text.parse().ok());
    // Releases that did not record it counted failures.
    recorded.unwrap_or_else(|| failed_deployment(meta).map_or(0, |failed| failed.attempts))
}

/// An order was sent, whatever became of it.
pub(super) fn was_ordered(meta: &ObjectMeta) -> bool {
    meta.annotations.contains_key(annotation::ORDERS)
}

/// A virtual machine may have been ordered though none is on record: by CAPC, or before a backup from which the object
/// comes. Without boot data none is ordered.
pub(super) fn may_have_one(meta: &ObjectMeta, machine: Option<&Machine>) -> bool {
    let boots = |machine: &Machine| {
        machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty())
    };
    was_ordered(meta) || machine.is_none_or(boots)
}

/// The name of the machine of an order.
pub(super) fn name(object: &str, attempt: u32) -> String {
    if attempt == 0 {
        return object.to_owned();
    }
    let suffix = format!("-r{attempt}");
    let end = object.len().min(LONGEST.saturating_sub(suffix.len()));
    let kept = object.get(..end).unwrap_or(object).trim_end_matches('-');
    format!("{kept}{suffix}")
}

/// The name of the machine that is under way or next.
pub(super) fn current(meta: &ObjectMeta) -> String {
    name(&meta.name, attempt(meta))
}

/// A virtual machine has a name that the object gave.
pub(crate) fn is_of(meta: &ObjectMeta, vm: &str) -> bool {
    // The number is read from the name: counting up to the annotation would take as long as whoever wrote it wants.
    let number = vm.rsplit_once("-r").and_then(|(_, number)| number.parse().ok());
    vm == meta.name || number.is_some_and(|number| number <= attempt(meta) && name(&meta.name, number) == vm)
}

/// The machine ran once. The status shows it, and so does what survives when a move or a restore drops it.
pub(super) fn ran(object: &CloudStackMachine, machine: Option<&Machine>) -> bool {
    let has = |id: Option<&str>| id.is_some_and(|id| !id.is_empty());
    object.status.initialization.provisioned == Some(true)
        || has(object.spec.provider_id.as_deref())
        || has(machine.map(|machine| machine.spec.provider_id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attempt_has_a_name_of_its_own_that_a_host_can_have() {
        assert_eq!((name("m", 0).as_str(), name("m", 2).as_str()), ("m", "m-r2"));
        let long = format!("{}-{}", "a".repeat(59), "b".repeat(3));
        assert_eq!(name(&long, 0), long);
        assert_eq!(name(&long, 1), format!("{}-r1", "a".repeat(59)));
        let mut meta = ObjectMeta::named("ns", "m");
        assert!(is_of(&meta, "m") && !is_of(&meta, "m-r1"));
        meta.annotations.insert(annotation::ORDERS.to_owned(), "1".to_owned());
        assert!(is_of(&meta, "m") && is_of(&meta, "m-r1") && !is_of(&meta, "m-r2"));
        for strange in ["m-r", "m-r01", "m-r+1", "m-r-1", "n-r1"] {
            assert!(!is_of(&meta, strange), "{strange}");
        }
        meta.annotations.insert(annotation::ORDERS.to_owned(), u32::MAX.to_string());
        assert!(is_of(&meta, "m-r7") && !is_of(&meta, "n-r7"), "decided without counting");
        let mut numbered = ObjectMeta::named("ns", "m-r3");
        assert!(is_of(&numbered, "m-r3") && !is_of(&numbered, "m-r3-r1"));
        numbered.annotations.insert(annotation::ORDERS.to_owned(), "1".to_owned());
        assert!(is_of(&numbered, "m-r3-r1"));
    }
}
