//! What is done about a KVMCluster.

use std::time::Duration;

use capstan_capi_core::conditions::{Verdict, shortened, state};
use capstan_capi_core::infrastructure::decide_cluster;
use capstan_capi_types::core::{APIEndpoint, condition, reason};
use capstan_controller::{Look, Wait};
use capstan_object::ConditionStatus::{False, True};

use super::{FINALIZER, KVMClusters, NETWORK, NetworkCall, network_of};
use crate::backend::Id;

type Decision = capstan_controller::Decision<KVMClusters>;

/// Names shown of machines that are waited for.
const SHOWN: usize = 3;
/// How often it is looked whether the network and its balancer are still there.
const LOOK: Duration = Duration::from_secs(10);

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<KVMClusters>) -> Decision {
    let owned = look.seen.cluster.is_some();
    decide_cluster(look, |object| &mut object.status.conditions, delete, owned.then_some(keep))
}

fn ready(look: &Look<KVMClusters>, decision: &mut Decision, verdict: Verdict) {
    state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn keep(look: &Look<KVMClusters>, decision: &mut Decision) {
    let name = network_of(&look.object);
    let Ok(network) = Id::try_from(name.clone()) else {
        let message = format!("the annotation {NETWORK} is {name:?}, which is no id; remove it");
        ready(look, decision, Verdict::new(False, "NoNetwork", message));
        return;
    };
    decision.add_finalizer(FINALIZER);
    decision.object.metadata.annotations.insert(NETWORK.to_owned(), name);
    let Some(held) = look.seen.network.as_ref().filter(|network| network.whole) else {
        // What cannot be read was refused when it was written.
        let subnet = look.object.spec.network.cidr.parse().ok();
        let call = NetworkCall::Ensure { network, subnet };
        let message = look.failure_of(&call).map(|failure| failure.error.to_string()).unwrap_or_default();
        ready(look, decision, Verdict::new(False, "CreatingNetwork", message));
        decision.call(call);
        return;
    };
    let (host, port) = held.endpoint;
    let endpoint = APIEndpoint { host: host.to_string(), port: i32::from(port) };
    let wanted = &mut decision.object.spec.control_plane_endpoint;
    if *wanted == APIEndpoint::default() {
        *wanted = endpoint;
    } else if *wanted != endpoint {
        let message = format!(
            "spec.controlPlaneEndpoint is {}:{}, but the balancer has {host}:{port}; leave the field empty",
            wanted.host, wanted.port
        );
        ready(look, decision, Verdict::new(False, "EndpointElsewhere", message));
        return;
    }
    if held.members != look.seen.control_plane {
        decision.call(NetworkCall::Balance { network, members: look.seen.control_plane.clone() });
    }
    let status = &mut decision.object.status;
    status.cidr = held.subnet.net().to_string();
    status.initialization.provisioned = Some(true);
    ready(look, decision, Verdict::new(True, reason::PROVISIONED, ""));
    decision.again_in(LOOK);
}

fn delete(look: &Look<KVMClusters>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    let machines = &look.seen.machines;
    if !machines.is_empty() {
        let names = shortened(machines, SHOWN);
        let message = format!("the network stays until these machines are gone: {names}");
        decision.wait(Wait::on("WaitingForMachines", message.as_str()));
        ready(look, decision, Verdict::new(False, reason::DELETING, message));
        return;
    }
    match (&look.seen.network, Id::try_from(network_of(&look.object))) {
        (Some(_), Ok(network)) => {
            let call = NetworkCall::Remove { network };
            let message = look.failure_of(&call).map(|failure| failure.error.to_string()).unwrap_or_default();
            ready(look, decision, Verdict::new(False, reason::DELETING, message));
            decision.call(call);
        }
        _ => {
            decision.remove_finalizer(FINALIZER);
        }
    }
}
