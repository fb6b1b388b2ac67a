//! Decides about a KubeadmConfig.

mod certificates;
mod data;

use std::time::Duration;

use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Effect, Look, ObjectRef, Wait};
use capstan_object::{OwnerReference, Time};
use jiff::SignedDuration;
use serde_json::json;

use self::data::Step;
use super::observed::is_initialized;
use super::token::{self, TokenCall, TokenState};
use super::{BootstrapController, Settings, status};
use crate::bootstrap_data;

type Decision = capstan_controller::Decision<BootstrapController>;

/// Requeue interval while blocked, if no event triggers a reconcile earlier.
const RETRY: Duration = Duration::from_secs(30);

pub fn decide(settings: &Settings, look: &Look<BootstrapController>) -> Decision {
    let mut decision = Decision::rest(look);
    let (Some(machine), Some(cluster)) = (&look.seen.machine, &look.seen.cluster) else {
        decision.wait(Wait::on("WaitingForOwner", "the machine that boots from this, and its cluster"));
        return decision;
    };
    if look.paused.is_some() {
        status::paused(&mut decision, look);
        return decision;
    }
    if look.object.metadata.is_deleting() {
        return decision;
    }
    adopt_data(look, &mut decision);
    let made = look.object.status.initialization.data_secret_created == Some(true);
    if cluster.status.initialization.infrastructure_provisioned != Some(true) {
        status::no_data(
            &mut decision,
            look,
            "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        );
        decision.wait(Wait::on("WaitingForInfrastructure", "the infrastructure of the cluster"));
    } else if let Some(name) = named_secret(machine)
        && (!made || look.object.status.data_secret_name.is_empty())
    {
        // `clusterctl move` and restores keep the spec and lose the status.
        record_data(&mut decision, look, name);
    } else if made && look.seen.pool {
        keep_pool(&Step { settings, look, machine, cluster }, &mut decision);
    } else if made {
        status::available(&mut decision, look);
        keep_token(settings, look, machine, cluster, &mut decision);
    } else {
        let step = Step { settings, look, machine, cluster };
        if let Err(error) = step.make(&mut decision) {
            status::no_data(&mut decision, look, error.to_string());
            step.release_lock(&mut decision);
            decision.again_in(RETRY);
        }
    }
    status::summarise(&mut decision, look);
    decision
}

fn named_secret(machine: &Machine) -> Option<String> {
    machine.spec.bootstrap.data_secret_name.clone().filter(|name| !name.is_empty())
}

fn record_data(decision: &mut Decision, look: &Look<BootstrapController>, name: String) {
    decision.object.status.data_secret_name = name;
    decision.object.status.initialization.data_secret_created = Some(true);
    status::available(decision, look);
}

fn owner_of_data(config: &KubeadmConfig) -> OwnerReference {
    OwnerReference { controller: Some(true), ..OwnerReference::to(config) }
}

/// Restores a missing owner reference on the data Secret.
fn adopt_data(look: &Look<BootstrapController>, decision: &mut Decision) {
    let Some(data) = &look.seen.data else { return };
    let owner = owner_of_data(&look.object);
    let mut owners = data.metadata.owner_references.clone();
    if owners.contains(&owner)
        || owners.iter().any(|other| other.controller == Some(true) && other.kind != owner.kind)
    {
        return;
    }
    owners.retain(|other| !other.same_owner(&owner));
    owners.push(owner);
    let change = json!({"metadata": {"ownerReferences": owners}});
    decision.then(Effect::merge_guarded(ObjectRef::to(data), &data.metadata, change));
}

/// Extends an unused token and recreates it if it is gone: a machine that boots late must still be able to join.
fn keep_token(
    settings: &Settings,
    look: &Look<BootstrapController>,
    machine: &Machine,
    cluster: &Cluster,
    decision: &mut Decision,
) {
    if !machine.status.node_ref.name.is_empty() || !is_initialized(cluster) {
        return;
    }
    let due = match &look.seen.token {
        TokenState::NotNeeded => return,
        TokenState::Missing | TokenState::Found { expires: None } => true,
        TokenState::Found { expires: Some(expires) } => token::is_due(*expires, settings.token_ttl, look.now),
    };
    if due {
        decision.then(Effect::Call(token_call(settings, look, cluster)));
    }
    decision.again_in(token::interval(settings.token_ttl));
}

/// Keeps the data of a pool usable: a token that nodes have joined with is replaced when half of its lifetime is over, and
/// the data is rendered anew when the token or the configuration changed.
fn keep_pool(step: &Step<'_>, decision: &mut Decision) {
    let Step { settings, look, machine, cluster } = *step;
    status::available(decision, look);
    if !is_initialized(cluster) {
        return;
    }
    let joined = !machine.status.node_ref.name.is_empty();
    match &look.seen.token {
        TokenState::Found { expires: Some(expires) }
            if joined && token::is_half_spent(*expires, settings.token_ttl, look.now) =>
        {
            // Recorded first, as a new one: it is created in the workload cluster from the spec.
            let join = &mut decision.object.spec.join_configuration;
            let old = bootstrap_data::token(join).and_then(token::halves).map_or("", |(id, _)| id);
            join.discovery.bootstrap_token.token = token::generate(&look.seen.seed, old);
            return;
        }
        TokenState::Found { .. } if !joined => keep_token(settings, look, machine, cluster, decision),
        TokenState::Found { .. } | TokenState::NotNeeded | TokenState::Missing => {}
    }
    // Machines still boot from the data that is there.
    if let Err(error) = step.join(false, decision) {
        decision.wait(Wait::on("DataNotRenewed", error.to_string())).again_in(RETRY);
    }
}

fn token_call(settings: &Settings, look: &Look<BootstrapController>, cluster: &Cluster) -> TokenCall {
    let join = &look.object.spec.join_configuration;
    let id =
        bootstrap_data::token(join).and_then(token::halves).map(|(id, _)| id.to_owned()).unwrap_or_default();
    let ttl = SignedDuration::try_from(settings.token_ttl).unwrap_or(SignedDuration::from_mins(15));
    TokenCall {
        namespace: cluster.metadata.namespace.clone(),
        cluster: cluster.metadata.name.clone(),
        id,
        expires: Time::new(look.now + ttl),
    }
}
