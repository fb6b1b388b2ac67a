//! What is done about a SimCluster.

use capstan_capi_core::conditions::{Verdict, state};
use capstan_capi_core::infrastructure::decide_cluster;
use capstan_capi_types::core::{APIEndpoint, condition, reason};
use capstan_controller::{Look, Wait};
use capstan_guest::Balancer;
use capstan_object::{ConditionStatus, Object};

use super::{BalancerCall, FINALIZER, SimClusters, balancer_of};

type Decision = capstan_controller::Decision<SimClusters>;

/// Names shown of machines that are waited for.
const SHOWN: usize = 3;

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<SimClusters>) -> Decision {
    let owned = look.seen.cluster.is_some();
    decide_cluster(look, |object| &mut object.status.conditions, delete, owned.then_some(keep))
}

fn ready(look: &Look<SimClusters>, decision: &mut Decision, verdict: Verdict) {
    state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn keep(look: &Look<SimClusters>, decision: &mut Decision) {
    let balancer = balancer_of(&look.object.key());
    decision.add_finalizer(FINALIZER);
    let Some(held) = &look.seen.balancer else {
        decision.call(BalancerCall::Allocate { balancer });
        return;
    };
    let endpoint = endpoint(held);
    let wanted = &mut decision.object.spec.control_plane_endpoint;
    if *wanted == APIEndpoint::default() {
        *wanted = endpoint;
    } else if *wanted != endpoint {
        let message = format!(
            "spec.controlPlaneEndpoint is {}:{}, but the load balancer has {}; leave the field empty",
            wanted.host, wanted.port, held.endpoint
        );
        ready(look, decision, Verdict::new(ConditionStatus::False, "EndpointElsewhere", message));
        return;
    }
    if held.members != look.seen.control_plane {
        decision.call(BalancerCall::Balance { balancer, members: look.seen.control_plane.clone() });
    }
    let status = &mut decision.object.status;
    status.failure_domains = look.object.spec.failure_domains.clone();
    status.initialization.provisioned = Some(true);
    ready(look, decision, Verdict::new(ConditionStatus::True, reason::PROVISIONED, ""));
}

fn endpoint(balancer: &Balancer) -> APIEndpoint {
    APIEndpoint { host: balancer.endpoint.ip().to_string(), port: i32::from(balancer.endpoint.port()) }
}

fn delete(look: &Look<SimClusters>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    let machines = &look.seen.machines;
    if !machines.is_empty() {
        let names = capstan_capi_core::conditions::shortened(machines, SHOWN);
        let message = format!("the load balancer stays until these machines are gone: {names}");
        decision.wait(Wait::on("WaitingForMachines", message.as_str()));
        ready(look, decision, Verdict::new(ConditionStatus::False, reason::DELETING, message));
    } else if look.seen.balancer.is_some() {
        decision.call(BalancerCall::Release { balancer: balancer_of(&look.object.key()) });
    } else {
        decision.remove_finalizer(FINALIZER);
    }
}
