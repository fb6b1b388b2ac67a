//! Decisions about KVMClusters.

use std::time::Duration;

use capstan_capi_types::core::APIEndpoint;
use capstan_controller::Look;
use capstan_object::ConditionStatus::False;
use capstan_provider_kit::{Infrastructure, decide_cluster, decisions};

use super::{FINALIZER, KVMClusters, NETWORK, NetworkCall, network_of};
use crate::backend::Id;

type Decision = capstan_controller::Decision<KVMClusters>;

/// Interval at which the network and its load balancer are checked.
const LOOK: Duration = Duration::from_secs(10);

pub(super) fn decide(look: &Look<KVMClusters>) -> Decision {
    let owned = look.seen.members.cluster.is_some();
    decide_cluster(look, Infrastructure::conditions_mut, delete, owned.then_some(keep))
}

fn keep(look: &Look<KVMClusters>, decision: &mut Decision) {
    let name = network_of(&look.object);
    let Ok(network) = Id::try_from(name.clone()) else {
        let message = format!("the annotation {NETWORK} is {name:?}, which is not an id; remove it");
        decisions::ready(look, decision, False, "NoNetwork", message);
        return;
    };
    decision.add_finalizer(FINALIZER);
    decision.object.metadata.annotations.insert(NETWORK.to_owned(), name);
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    decisions::answers(decision);
    let Some(held) = look.seen.network.as_ref().filter(|network| network.complete) else {
        // Invalid values were rejected at admission.
        let subnet = look.object.spec.network.cidr.parse().ok();
        let call = NetworkCall::Ensure { network, subnet };
        decisions::ready(look, decision, False, "CreatingNetwork", decisions::failure(look, &call));
        decision.call(call);
        return;
    };
    let (host, port) = held.endpoint;
    let endpoint = APIEndpoint { host: host.to_string(), port: i32::from(port) };
    if !decisions::set_endpoint(look, decision, "the balancer", &endpoint) {
        return;
    }
    let members = &look.seen.members.control_plane;
    if held.members != *members {
        decision.call(NetworkCall::Balance { network, members: members.clone() });
    }
    decision.object.status.cidr = held.subnet.net().to_string();
    decisions::provisioned(look, decision);
    decision.again_in(LOOK);
}

fn delete(look: &Look<KVMClusters>, decision: &mut Decision) {
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    let network = look.seen.network.as_ref().and_then(|_| Id::try_from(network_of(&look.object)).ok());
    let remove = network.map(|network| NetworkCall::Remove { network });
    let kept = ("the network", &look.seen.members.machines[..]);
    decisions::delete_cluster(look, decision, FINALIZER, kept, remove);
}
