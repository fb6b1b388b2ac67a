//! The Node a Machine has become.

use std::time::Duration;

use capstan_capi_types::core::MachineNodeReference;
use capstan_controller::{Decision, Look, Note, Wait};

use super::node_sync;
use crate::machine::MachineController;
use crate::machine::call::MachineCall;
use crate::machine::observed::NodeSeen;

/// When a workload cluster that does not answer is asked again; that it answers wakes us before, as a rule.
const NOT_CONNECTED_AGAIN: Duration = Duration::from_secs(20);

/// Remembers which Node it is and what it says about its system, and brings the Node in line with the Machine.
pub(super) fn find(look: &Look<MachineController>, decision: &mut Decision<MachineController>) {
    // As long as the infrastructure only offers an identity, the machine does not have it yet.
    if decision.object.spec.provider_id.is_empty() {
        return;
    }
    let node = match &look.seen.node {
        NodeSeen::Found(node) => node,
        NodeSeen::NotAsked => return,
        NodeSeen::Missing => {
            if !look.object.metadata.is_deleting() && look.object.status.node_ref.name.is_empty() {
                let what = format!("a Node with spec.providerID {}", decision.object.spec.provider_id);
                decision.wait(Wait::on("WaitingForNode", what));
            }
            return;
        }
        NodeSeen::NotConnected(why) | NodeSeen::Unusable(why) => {
            decision.wait(Wait::on("ConnectionDown", why.clone())).again_in(NOT_CONNECTED_AGAIN);
            return;
        }
    };
    let name = &node.metadata.name;
    if decision.object.status.node_ref.name.is_empty() {
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
    );
    if let Some(change) = change {
        let call = MachineCall::PatchNode { node: name.clone(), change };
        // What was just written may not have come back yet.
        if look.result_of(&call).is_none() {
            decision.call(call);
        }
    }
}
