//! Decides about a MachinePool, phase by phase.

use std::time::Duration;

use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::machine_pool::FINALIZER;
use capstan_capi_types::core::{Cluster, Deprecated, condition, label, reason};
use capstan_controller::{Decision, Effect, Look, Note, Wait};
use capstan_object::{ConditionStatus, OwnerReference};

use super::{MachinePools, deletion, desired, nodes, status};
use crate::conditions::{self, ConditionState};
use crate::contract::{BootstrapConfig, Claim, External, InfrastructurePool, Lookup, claim};
use crate::machines::set_condition;
use crate::{owners, paused};

/// Requeue interval for a missing object: its creation triggers no reconcile before it has an owner.
const MISSING_AGAIN: Duration = Duration::from_secs(30);

/// Requeue interval while the provider's machines differ from the reported number: providers need not set an owner
/// that triggers the pool.
const MACHINES_AGAIN: Duration = Duration::from_secs(15);

pub(super) type Looked = Look<MachinePools>;
pub(super) type Decided = Decision<MachinePools>;

pub(super) fn decide(look: &Looked) -> Decided {
    let mut decision = Decision::rest(look);
    let pool = &look.object;
    let Some(cluster) = &look.seen.cluster else {
        let what = format!("Cluster {} to exist", pool.spec.cluster_name);
        decision.wait(Wait::on("ClusterDoesNotExist", what)).again_in(MISSING_AGAIN);
        return decision;
    };
    if !pool.metadata.is_deleting() {
        decision.add_finalizer(FINALIZER);
    }
    let state = paused::condition(look.paused.as_deref());
    conditions::set_state(look, &mut decision.object.status.conditions, condition::PAUSED, state, None);
    if look.paused.is_some() {
        return decision;
    }
    owner_and_label(&mut decision, cluster);
    let mut deleting = None;
    if pool.metadata.is_deleting() {
        deleting = Some(deletion::next(look, &mut decision, cluster));
    } else {
        for step in [bootstrap, infrastructure, machines] {
            if let Err(why) = step(look, &mut decision) {
                decision.wait(Wait::on("InvalidReference", why)).again_in(MISSING_AGAIN);
            }
        }
        nodes::follow(look, &mut decision);
    }
    status::report(look, &mut decision, deleting);
    decision
}

fn owner_and_label(decision: &mut Decided, cluster: &Cluster) {
    let object = &mut decision.object;
    object.metadata.labels.insert(label::CLUSTER_NAME.to_owned(), object.spec.cluster_name.clone());
    owners::ensure(&mut object.metadata.owner_references, OwnerReference::to(cluster));
}

/// Copies the name of the data Secret, each time anew: the bootstrap provider may replace it.
fn bootstrap(look: &Looked, decision: &mut Decided) -> Result<(), String> {
    let template = &look.object.spec.template.spec;
    let kind = &template.bootstrap.config_ref.kind;
    let created = &mut decision.object.status.initialization.bootstrap_data_secret_created;
    let object = match &look.seen.bootstrap {
        Lookup::NotReferenced => {
            // The user provides the Secret.
            *created = Some(template.bootstrap.data_secret_name.is_some());
            return Ok(());
        }
        Lookup::Object(object) => object,
        Lookup::Missing => {
            decision.wait(Wait::on("DoesNotExist", format!("{kind} to be created"))).again_in(MISSING_AGAIN);
            return Ok(());
        }
        Lookup::Unusable(why) => return Err(why.clone()),
    };
    take(look, decision, object)?;
    if object.metadata.is_deleting() {
        return Ok(());
    }
    let contract = BootstrapConfig(object);
    let made = contract.data_secret_created().map_err(|error| error.to_string())?.unwrap_or(false);
    decision.object.status.initialization.bootstrap_data_secret_created = Some(made);
    if !made {
        let what = format!("{kind} {} to generate the data secret", object.metadata.name);
        decision.wait(Wait::on("WaitingForBootstrapData", what).object(object.reference()));
        return Ok(());
    }
    match contract.data_secret_name().map_err(|error| error.to_string())? {
        Some(name) if !name.is_empty() => {
            decision.object.spec.template.spec.bootstrap.data_secret_name = Some(name);
            Ok(())
        }
        _ => Err(format!("{kind} {} has no status.dataSecretName", object.metadata.name)),
    }
}

/// Copies the number of machines and their providerIDs once the infrastructure is provisioned.
fn infrastructure(look: &Looked, decision: &mut Decided) -> Result<(), String> {
    let reference = &look.object.spec.template.spec.infrastructure_ref;
    let object = match &look.seen.infrastructure {
        Lookup::NotReferenced => return Ok(()),
        Lookup::Object(object) => object,
        Lookup::Missing => {
            if look.object.status.initialization.infrastructure_provisioned == Some(true) {
                let message = format!(
                    "MachinePool infrastructure resource {} {}/{} has been deleted after being ready",
                    reference.kind, look.object.metadata.namespace, reference.name
                );
                fail(decision, Some("InvalidConfiguration".to_owned()), Some(message));
            }
            let what = status::missing_infrastructure(look);
            decision.wait(Wait::on("DoesNotExist", what)).again_in(MISSING_AGAIN);
            return Ok(());
        }
        Lookup::Unusable(why) => return Err(why.clone()),
    };
    take(look, decision, object)?;
    if object.metadata.is_deleting() {
        return Ok(());
    }
    let contract = InfrastructurePool(object);
    let provisioned = contract.provisioned().map_err(|error| error.to_string())?.unwrap_or(false);
    decision.object.status.initialization.infrastructure_provisioned = Some(provisioned);
    if !provisioned {
        let what = format!("{} {} to be provisioned", reference.kind, reference.name);
        decision.wait(Wait::on("WaitingForInfrastructure", what).object(object.reference()));
        return Ok(());
    }
    let ids = contract.provider_ids().map_err(|error| error.to_string())?.unwrap_or_default();
    let replicas = contract.replicas().map_err(|error| error.to_string())?;
    let own = &mut decision.object;
    own.status.replicas = replicas.or(own.status.replicas);
    // Machines without any providerID are yet to be reported.
    if ids.is_empty() && own.status.replicas.unwrap_or(0) != 0 {
        return Ok(());
    }
    own.spec.provider_id_list = ids;
    Ok(())
}

/// Creates a Machine for each infrastructure machine, keeps them up to date, and marks them as such.
fn machines(look: &Looked, decision: &mut Decided) -> Result<(), String> {
    let Some(found) = &look.seen.infrastructure_machines else { return Ok(()) };
    let pool = &look.object;
    let cluster_goes = look.seen.cluster.as_ref().is_none_or(|cluster| cluster.metadata.is_deleting());
    let counted = found.iter().filter(|machine| !machine.metadata.is_deleting()).count();
    if decision.object.status.replicas.and_then(|count| usize::try_from(count).ok()) != Some(counted) {
        decision.again_in(MACHINES_AGAIN);
    }
    for object in found {
        let node = nodes::of_machine(look, object);
        let of = |machine: &&std::sync::Arc<_>| desired::is_for(machine, object);
        match look.seen.machines.iter().find(of) {
            Some(machine) if machine.metadata.is_deleting() => {}
            Some(machine) => {
                for effect in desired::change(pool, machine, node) {
                    decision.best_effort(effect);
                }
            }
            // Its Machine was deleted; it goes too. Without its cluster, none begins to.
            None if object.metadata.is_deleting() || cluster_goes => {}
            None => {
                let machine = desired::machine(pool, object, node);
                let name = &machine.metadata.name;
                let note = Note::normal("SuccessfulCreate", "Create", format!("Created Machine {name:?}"));
                decision.best_effort_noting(Effect::create(&machine), note);
            }
        }
    }
    for machine in &look.seen.machines {
        let state = if machine.metadata.is_deleting() {
            ConditionState::new(ConditionStatus::False, reason::NOT_UP_TO_DATE, "Machine is being deleted")
        } else {
            ConditionState::new(ConditionStatus::True, reason::UP_TO_DATE, "")
        };
        let effect = set_condition(machine, machine_condition::UP_TO_DATE, Some(&state), look.now);
        if let Some(effect) = effect {
            decision.best_effort(effect);
        }
    }
    Ok(())
}

/// Sets owner and label on an object, and copies its terminal failure.
fn take(look: &Looked, decision: &mut Decided, object: &External) -> Result<(), String> {
    let pool = &look.object;
    let wanted = Claim {
        owner: OwnerReference::controlled_by(&**pool),
        cluster: &pool.spec.cluster_name,
        evicted: &|_| false,
    };
    if let Some(effect) = claim(object, &wanted)? {
        decision.best_effort(effect);
    }
    let (reason, message) = object.failure();
    fail(decision, reason, message);
    Ok(())
}

fn fail(decision: &mut Decided, reason: Option<String>, message: Option<String>) {
    if reason.is_none() && message.is_none() {
        return;
    }
    let deprecated = decision.object.status.deprecated.get_or_insert_with(Deprecated::default);
    let failure = deprecated.v1beta1.get_or_insert_default();
    failure.failure_reason = reason.or(failure.failure_reason.take());
    failure.failure_message = message.or(failure.failure_message.take());
}
