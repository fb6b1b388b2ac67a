//! Copies fields from the bootstrap and infrastructure objects of a Machine.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, Deprecated, MachineSet, label};
use capstan_controller::{Decision, Look, Wait};
use capstan_object::{Object, OwnerReference};

use crate::contract::{BootstrapConfig, Claim, External, InfrastructureMachine, Lookup, claim};
use crate::machine::MachineController;

/// Requeue interval for a missing object: its creation triggers no reconcile before it has an owner.
pub(super) const MISSING_AGAIN: Duration = Duration::from_secs(30);

/// Copies the name of the bootstrap data Secret.
pub(super) fn bootstrap(
    look: &Look<MachineController>,
    cluster: &Cluster,
    decision: &mut Decision<MachineController>,
) -> Result<(), String> {
    let machine = &look.object;
    let kind = &machine.spec.bootstrap.config_ref.kind;
    let object = match &look.seen.bootstrap {
        // The user provides the Secret.
        Lookup::NotReferenced => return Ok(()),
        Lookup::Object(object) => object,
        Lookup::Missing => {
            if !machine.metadata.is_deleting() {
                decision
                    .wait(Wait::on("DoesNotExist", format!("{kind} to be created")))
                    .again_in(MISSING_AGAIN);
            }
            return Ok(());
        }
        Lookup::Unusable(why) => return Err(why.clone()),
    };
    take(look, cluster, decision, object)?;
    if machine.spec.bootstrap.data_secret_name.is_some() {
        decision.object.status.initialization.bootstrap_data_secret_created = Some(true);
        return Ok(());
    }
    let contract = BootstrapConfig(object);
    let created = contract.data_secret_created().map_err(|error| error.to_string())?.unwrap_or(false);
    if object.metadata.is_deleting() {
        return Ok(());
    }
    if !created {
        let what = format!("{kind} {} to generate the data secret", object.metadata.name);
        decision.wait(Wait::on("WaitingForBootstrapData", what).object(object.reference()));
        return Ok(());
    }
    match contract.data_secret_name().map_err(|error| error.to_string())? {
        Some(name) if !name.is_empty() => {
            decision.object.spec.bootstrap.data_secret_name = Some(name);
            decision.object.status.initialization.bootstrap_data_secret_created = Some(true);
            Ok(())
        }
        _ => Err(format!("{kind} {} has no status.dataSecretName", object.metadata.name)),
    }
}

/// Copies providerID, addresses and failure domain, once the infrastructure is provisioned.
pub(super) fn infrastructure(
    look: &Look<MachineController>,
    cluster: &Cluster,
    decision: &mut Decision<MachineController>,
) -> Result<(), String> {
    let machine = &look.object;
    let kind = &machine.spec.infrastructure_ref.kind;
    let was_provisioned = machine.status.initialization.infrastructure_provisioned == Some(true);
    let object = match &look.seen.infrastructure {
        Lookup::NotReferenced => return Ok(()),
        Lookup::Object(object) => object,
        Lookup::Missing => {
            if machine.metadata.is_deleting() {
                return Ok(());
            }
            if was_provisioned {
                let message = format!(
                    "Machine infrastructure resource {kind} {}/{} has been deleted after provisioning was completed",
                    machine.metadata.namespace, machine.spec.infrastructure_ref.name
                );
                fail(decision, Some("InvalidConfiguration".to_owned()), Some(message.clone()));
                decision.wait(Wait::on("Deleted", message));
            } else {
                decision.wait(Wait::on("DoesNotExist", format!("{kind} to be created")));
            }
            decision.again_in(MISSING_AGAIN);
            return Ok(());
        }
        Lookup::Unusable(why) => return Err(why.clone()),
    };
    take(look, cluster, decision, object)?;
    let contract = InfrastructureMachine(object);
    let provisioned = contract.provisioned().map_err(|error| error.to_string())?.unwrap_or(false);
    if object.metadata.is_deleting() {
        return Ok(());
    }
    let provider_id = contract.provider_id().map_err(|error| error.to_string())?.unwrap_or_default();
    if (!provisioned && !was_provisioned) || provider_id.is_empty() {
        let what = format!("{kind} {} to be provisioned", object.metadata.name);
        decision.wait(Wait::on("WaitingForInfrastructure", what).object(object.reference()));
        return Ok(());
    }
    let own = &mut decision.object;
    if let Some(addresses) = contract.addresses().map_err(|error| error.to_string())? {
        own.status.addresses = addresses;
    }
    if let Some(domain) = contract.spec_failure_domain().map_err(|error| error.to_string())? {
        own.spec.failure_domain = domain;
    }
    if let Some(domain) = contract.failure_domain().map_err(|error| error.to_string())? {
        own.status.failure_domain = domain;
    }
    own.spec.provider_id = provider_id;
    own.status.initialization.infrastructure_provisioned = Some(true);
    Ok(())
}

/// Sets owner and label on an object, and copies its terminal failure. The controller that created the object for the
/// machine owned it until now; its reference is removed.
fn take(
    look: &Look<MachineController>,
    cluster: &Cluster,
    decision: &mut Decision<MachineController>,
    object: &External,
) -> Result<(), String> {
    let machine = &look.object;
    let control_plane =
        machine.metadata.labels.contains_key(label::CONTROL_PLANE).then_some(&cluster.spec.control_plane_ref);
    let made_it = |owner: &OwnerReference| {
        (owner.group() == MachineSet::KIND.group && owner.kind == MachineSet::KIND.kind)
            || control_plane.is_some_and(|plane| {
                !plane.kind.is_empty() && owner.group() == plane.api_group && owner.kind == plane.kind
            })
    };
    let wanted = Claim {
        owner: OwnerReference::controlled_by(&**machine),
        cluster: &machine.spec.cluster_name,
        evicted: &made_it,
    };
    if let Some(effect) = claim(object, &wanted)? {
        decision.best_effort(effect);
    }
    let (reason, message) = object.failure();
    fail(decision, reason, message);
    Ok(())
}

fn fail(decision: &mut Decision<MachineController>, reason: Option<String>, message: Option<String>) {
    if reason.is_none() && message.is_none() {
        return;
    }
    let deprecated = decision.object.status.deprecated.get_or_insert_with(Deprecated::default);
    let failure = deprecated.v1beta1.get_or_insert_default();
    failure.failure_reason = reason.or(failure.failure_reason.take());
    failure.failure_message = message.or(failure.failure_message.take());
}

pub(super) fn unusable(decision: &mut Decision<MachineController>, why: String) {
    decision.wait(Wait::on("InvalidReference", why)).again_in(MISSING_AGAIN);
}
