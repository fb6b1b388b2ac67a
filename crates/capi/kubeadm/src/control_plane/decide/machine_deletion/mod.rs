//! Deleting one machine of a control plane.
//!
//! ```text
//! move etcd's leadership away ─▶ delete the Machine ─▶ core drains the node and waits at our pre-terminate hook
//!   ─▶ remove the member from etcd ─▶ remove the hook
//! ```

mod pre_terminate;

use capstan_controller::{Effect, Note};

use super::etcd_members::move_leader;
use super::turn::Turn;
use crate::control_plane::observed::Plane;

pub(super) use pre_terminate::{let_go, release};

/// Deletes a machine after moving etcd's leadership away from it.
pub(super) fn remove(turn: &mut Turn<'_>, plane: &Plane, name: &str, note: Note) {
    let Some(member) = plane.member(name) else { return };
    match move_leader(turn, plane, member) {
        Ok(call) => {
            if let Some(call) = call {
                turn.decision.call(call);
            }
            turn.decision.then_noting(Effect::delete(member.machine.as_ref()), note);
        }
        Err(why) => {
            turn.obstacles.push(why.clone());
            turn.wait("EtcdLeader", why);
        }
    }
}
