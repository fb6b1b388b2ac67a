//! Decisions about SimClusters.

use capstan_capi_types::core::APIEndpoint;
use capstan_controller::Look;
use capstan_guest::Balancer;
use capstan_object::Object;
use capstan_provider_kit::{Infrastructure, decide_cluster, decisions};

use super::{BalancerCall, FINALIZER, SimClusters, balancer_of};

type Decision = capstan_controller::Decision<SimClusters>;

pub(super) fn decide(look: &Look<SimClusters>) -> Decision {
    let owned = look.seen.members.cluster.is_some();
    decide_cluster(look, Infrastructure::conditions_mut, delete, owned.then_some(keep))
}

fn keep(look: &Look<SimClusters>, decision: &mut Decision) {
    let balancer = balancer_of(&look.object.key());
    decision.add_finalizer(FINALIZER);
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    decisions::answers(decision);
    let Some(held) = &look.seen.balancer else {
        decision.call(BalancerCall::Allocate { balancer });
        return;
    };
    if !decisions::set_endpoint(look, decision, "the load balancer", &endpoint(held)) {
        return;
    }
    let members = &look.seen.members.control_plane;
    if held.members != *members {
        decision.call(BalancerCall::Balance { balancer, members: members.clone() });
    }
    decision.object.status.failure_domains = look.object.spec.failure_domains.clone();
    decisions::provisioned(look, decision);
}

fn endpoint(balancer: &Balancer) -> APIEndpoint {
    APIEndpoint { host: balancer.endpoint.ip().to_string(), port: i32::from(balancer.endpoint.port()) }
}

fn delete(look: &Look<SimClusters>, decision: &mut Decision) {
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    let balancer = balancer_of(&look.object.key());
    let release = look.seen.balancer.as_ref().map(|_| BalancerCall::Release { balancer });
    let kept = ("the load balancer", &look.seen.members.machines[..]);
    decisions::delete_cluster(look, decision, FINALIZER, kept, release);
}
