//! The mark by which a machine in a site is known as ours.

use capstan_guest::vm::Vm;

/// The ownership mark on machines in a site. Its value is the id; machines without it are never touched.
pub const MACHINE_TAG: &str = "infrastructure.cluster.x-k8s.io/simmachine";

/// The machine has our mark.
pub(super) fn is_ours(vm: &Vm) -> bool {
    vm.tags.get(MACHINE_TAG).is_some_and(|id| *id == vm.id)
}
