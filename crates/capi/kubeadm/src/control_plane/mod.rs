//! What a control plane of kubeadm machines does next: decisions alone, nothing is carried out here.
//!
//! ```text
//! Plane (machines, etcd members, time) ─▶ remediation ─▶ roll-out ─▶ scale ─▶ Step
//!                                            │              │          │
//!                                        quorum         up_to_date   preflight, select
//! ```
//!
//! One machine at a time, and none that etcd or the API cannot do without: a step that adds or removes is taken
//! only if what is left afterwards, seen at its worst, still has a quorum.

mod plane;
mod preflight;
mod quorum;
mod remediation;
mod select;
mod step;
#[cfg(test)]
mod tests;
mod up_to_date;

pub use plane::{EtcdMember, Member, Origin, Plane};
pub use preflight::{Blocked, check as preflight_check};
pub use quorum::{Change, components_survive, etcd_survives};
pub use remediation::{Remediation, RemediationRecord, remediate};
pub use select::{failure_domain_for_new_machine, next_machine_to_delete};
pub use step::{Step, next_step};
pub use up_to_date::{outdated_machines, reasons_to_replace};
