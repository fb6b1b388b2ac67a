//! Deleting one machine of a control plane.
//!
//! ```text
//! move etcd's leadership away ─▶ delete the Machine ─▶ core drains the node and waits at our pre-terminate hook
//!   ─▶ remove the member from etcd ─▶ remove the hook
//! ```

mod pre_terminate;

use capstan_controller::{Effect, Note};

use super::etcd_members::move_leader;
use super::scope::ReconcileScope;
use crate::control_plane::observed::ControlPlaneState;

pub(super) use pre_terminate::{complete, remove_hook};

/// Deletes a machine after moving etcd's leadership away from it.
pub(super) fn remove(
    scope: &mut ReconcileScope<'_>,
    plane: &ControlPlaneState,
    name: &str,
    note: Note,
    failure: Option<Note>,
) {
    let Some(member) = plane.machine(name) else { return };
    match move_leader(scope, plane, &member.machine, &member.node) {
        Ok(call) => {
            if let Some(call) = call {
                scope.decision.call(call);
            }
            let decision = scope.decision.then_noting(Effect::delete(member.machine.as_ref()), note);
            if let Some(failure) = failure {
                decision.or_noting(failure);
            }
        }
        Err(why) => {
            scope.obstacles.push(why.clone());
            scope.wait("EtcdLeader", why);
        }
    }
}
