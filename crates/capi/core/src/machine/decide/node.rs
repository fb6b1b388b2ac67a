//! The Node of a Machine.

use std::time::Duration;

use capstan_capi_types::core::MachineNodeReference;
use capstan_controller::{Decision, Effect, Look, Note, Wait};

use super::node_sync::{self, SyncedKeys};
use crate::machine::MachineController;
use crate::machine::call::MachineCall;
use crate::machine::observed::ObservedNode;

/// Requeue interval while the workload cluster is unreachable; reconnecting triggers a reconcile earlier in most cases.
const NOT_CONNECTED_AGAIN: Duration = Duration::from_secs(20);

/// Sets `nodeRef` and `nodeInfo`, and syncs labels, annotations and taints to the Node.
pub(super) fn find(
    look: &Look<MachineController>,
    decision: &mut Decision<MachineController>,
    synced: &SyncedKeys,
) {
    // The providerID of the infrastructure counts only once the Machine has it.
    if decision.object.spec.provider_id.is_empty() {
        return;
    }
    let node = match &look.seen.node {
        ObservedNode::Found(node) => node,
        ObservedNode::NotAsked => return,
        ObservedNode::Missing => {
            if !look.object.metadata.is_deleting() && look.object.status.node_ref.name.is_empty() {
                let what = format!("a Node with spec.providerID {}", decision.object.spec.provider_id);
                decision.wait(Wait::on("WaitingForNode", what));
            }
            return;
        }
        ObservedNode::NotConnected(why) | ObservedNode::Unusable(why) => {
            decision.wait(Wait::on("ConnectionDown", why.clone())).again_in(NOT_CONNECTED_AGAIN);
            return;
        }
    };
    let name = &node.metadata.name;
    // A reference that somebody changed would have another machine's Node drained and deleted.
    if decision.object.status.node_ref.name != *name {
        decision.object.status.node_ref = MachineNodeReference { name: name.clone() };
        decision.note(Note::normal("SuccessfulSetNodeRef", "SetNodeRef", name.clone()));
    }
    decision.object.status.node_info = Some(node.status.node_info.clone());
    if node.metadata.is_deleting() {
        return;
    }
    let change = node_sync::change(
        &decision.object,
        node,
        look.seen.infrastructure.object(),
        look.seen.set.as_deref(),
        look.seen.deployment.as_deref(),
        synced,
    );
    if let Some(change) = change {
        let call = MachineCall::PatchNode { node: name.clone(), change };
        // The cache may not have our last write yet.
        if look.result_of(&call).is_none() {
            // A cluster that rejects it must not block the machine's deletion.
            decision.best_effort(Effect::Call(call));
        }
    }
}
