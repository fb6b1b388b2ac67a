//! Decides about a Cluster.

use std::time::Duration;

use capstan_capi_types::core::cluster::FINALIZER;
use capstan_capi_types::core::{APIEndpoint, Deprecated, condition};
use capstan_controller::{Decision, Look, Note, Wait};
use capstan_object::OwnerReference;
use jiff::SignedDuration;

use super::observed::has_topology;
use super::{ClusterController, deletion, operation, status};
use crate::conditions;
use crate::contract::{Claim, ControlPlane, External, FieldError, InfrastructureCluster, Lookup, claim};
use crate::paused;

/// Requeue interval for a missing object: its creation triggers no reconcile before it has an owner.
const MISSING_AGAIN: Duration = Duration::from_secs(30);

pub(super) fn decide(look: &Look<ClusterController>, grace: SignedDuration) -> Decision<ClusterController> {
    let mut decision = Decision::rest(look);
    let deleting = look.object.metadata.is_deleting();
    if !deleting {
        decision.add_finalizer(FINALIZER);
    }
    let state = paused::condition(look.paused.as_deref());
    conditions::set_state(look, &mut decision.object.status.conditions, condition::PAUSED, state, None);
    if look.paused.is_some() {
        return decision;
    }
    let waits_for_topology = !deleting
        && has_topology(&look.object)
        && (look.object.spec.control_plane_ref.kind.is_empty()
            || look.object.spec.infrastructure_ref.kind.is_empty());
    if waits_for_topology {
        decision.wait(Wait::on("WaitingForTopology", "the topology to be generated"));
    } else {
        if let Err(error) = infrastructure(look, &mut decision) {
            unusable(&mut decision, error.to_string());
        }
        if let Err(error) = control_plane(look, &mut decision) {
            unusable(&mut decision, error.to_string());
        }
    }
    let deletion = deleting.then(|| deletion::next(look, &mut decision));
    status::report(look, &mut decision, deletion, grace);
    operation::update(look, &mut decision);
    decision
}

fn infrastructure(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
) -> Result<(), FieldError> {
    let cluster = &look.object;
    let was_provisioned = cluster.status.initialization.infrastructure_provisioned == Some(true);
    let kind = &cluster.spec.infrastructure_ref.kind;
    let object = match &look.seen.infrastructure {
        Lookup::NotReferenced => {
            // Infrastructure is managed elsewhere: nothing waits for it.
            if !cluster.metadata.is_deleting() {
                decision.object.status.initialization.infrastructure_provisioned = Some(true);
            }
            return Ok(());
        }
        Lookup::Object(object) => object,
        Lookup::Missing => {
            missing(look, decision, kind, was_provisioned, "provisioned");
            return Ok(());
        }
        Lookup::Unusable(why) => {
            unusable(decision, why.clone());
            return Ok(());
        }
    };
    take(look, decision, object);
    let contract = InfrastructureCluster(object);
    let provisioned = contract.provisioned()?.unwrap_or(false);
    if object.metadata.is_deleting() {
        return Ok(());
    }
    if !provisioned && !was_provisioned {
        let what = format!("{kind} {} to be provisioned", object.metadata.name);
        decision.wait(Wait::on("WaitingForInfrastructure", what).object(object.reference()));
        return Ok(());
    }
    copy_endpoint(decision, contract.control_plane_endpoint()?);
    decision.object.status.failure_domains = contract.failure_domains()?.unwrap_or_default();
    if !was_provisioned {
        let message = format!("Cluster {} InfrastructureProvisioned is now True", cluster.metadata.name);
        decision.note(Note::normal("InfrastructureReady", "Provision", message));
    }
    decision.object.status.initialization.infrastructure_provisioned = Some(true);
    Ok(())
}

fn control_plane(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
) -> Result<(), FieldError> {
    let cluster = &look.object;
    let was_initialized = cluster.status.initialization.control_plane_initialized == Some(true);
    let kind = &cluster.spec.control_plane_ref.kind;
    let object = match &look.seen.control_plane {
        Lookup::NotReferenced => {
            // Machines without a control plane object: initialized once one of them is a node.
            if look.seen.control_plane_machines.iter().any(|machine| !machine.status.node_ref.name.is_empty())
            {
                decision.object.status.initialization.control_plane_initialized = Some(true);
            }
            return Ok(());
        }
        Lookup::Object(object) => object,
        Lookup::Missing => {
            missing(look, decision, kind, was_initialized, "initialized");
            return Ok(());
        }
        Lookup::Unusable(why) => {
            unusable(decision, why.clone());
            return Ok(());
        }
    };
    take(look, decision, object);
    let contract = ControlPlane(object);
    let initialized = contract.initialized()?.unwrap_or(false);
    if object.metadata.is_deleting() {
        return Ok(());
    }
    if !initialized && !was_initialized {
        let what = format!("{kind} {} to be initialized", object.metadata.name);
        decision.wait(Wait::on("WaitingForControlPlane", what).object(object.reference()));
        return Ok(());
    }
    copy_endpoint(decision, contract.control_plane_endpoint()?);
    if !was_initialized {
        let message = format!("Cluster {} ControlPlaneInitialized is now True", cluster.metadata.name);
        decision.note(Note::normal("ControlPlaneInitialized", "Initialize", message));
    }
    decision.object.status.initialization.control_plane_initialized = Some(true);
    Ok(())
}

/// Sets owner and label on a provider's object, and copies its terminal failure.
fn take(look: &Look<ClusterController>, decision: &mut Decision<ClusterController>, object: &External) {
    let cluster = &look.object;
    // Without a topology other tools may control the object; the cluster only owns it.
    let owner = if has_topology(cluster) {
        OwnerReference::controlled_by(&**cluster)
    } else {
        OwnerReference::to(&**cluster)
    };
    match claim(object, &Claim { owner, cluster: &cluster.metadata.name, evicted: &|_| false }) {
        Ok(Some(effect)) => {
            decision.best_effort(effect);
        }
        Ok(None) => {}
        Err(why) => unusable(decision, why),
    }
    let (reason, message) = object.failure();
    if reason.is_none() && message.is_none() {
        return;
    }
    let deprecated = decision.object.status.deprecated.get_or_insert_with(Deprecated::default);
    let failure = deprecated.v1beta1.get_or_insert_default();
    failure.failure_reason = reason.or(failure.failure_reason.take());
    failure.failure_message = message.or(failure.failure_message.take());
}

fn copy_endpoint(decision: &mut Decision<ClusterController>, endpoint: Option<APIEndpoint>) {
    let own = &mut decision.object.spec.control_plane_endpoint;
    if !own.is_valid() {
        *own = endpoint.unwrap_or_default();
    }
}

fn missing(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
    kind: &str,
    was_there: bool,
    stage: &str,
) {
    if look.object.metadata.is_deleting() {
        return;
    }
    let wait = if was_there {
        Wait::on("Deleted", format!("{kind} has been deleted after being {stage}"))
    } else {
        Wait::on("DoesNotExist", format!("{kind} to be created"))
    };
    decision.wait(wait).again_in(MISSING_AGAIN);
}

fn unusable(decision: &mut Decision<ClusterController>, why: String) {
    decision.wait(Wait::on("InvalidReference", why)).again_in(MISSING_AGAIN);
}
