//! Status of a MachinePool.

use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::machine_pool::{condition as own, reason as own_reason};
use capstan_capi_types::core::{
    MachinePool, MachinePoolPhase, StatusVersion, TEMPLATE_SUFFIX, annotation, condition, reason,
};
use capstan_object::{Condition, ConditionStatus, Conditions, Time};

use super::decide::{Decided, Looked};
use super::observed::ObservedNodes;
use crate::conditions::{self, ConditionState, Fallback};
use crate::contract::Lookup;
use crate::machines::{self, added_versions, versions};

use ConditionStatus::{False, True, Unknown};

/// The conditions of a pool. Upstream has only `Paused` and the v1beta1 conditions that the others are mirrored to.
pub const CONDITIONS: &[&str] = &[
    condition::PAUSED,
    condition::READY,
    condition::BOOTSTRAP_CONFIG_READY,
    condition::INFRASTRUCTURE_READY,
    own::REPLICAS_READY,
    condition::DELETING,
];

/// Sets counts, phase and conditions.
pub(super) fn report(look: &Looked, decision: &mut Decided, deleting: Option<ConditionState>) {
    counters(look, decision);
    decision.object.status.phase = Some(phase(&decision.object));
    let pool = decision.object.clone();
    let mut conditions = std::mem::take(&mut decision.object.status.conditions);
    let mut set = |kind: &str, state: ConditionState, since: Option<Time>| {
        conditions::set_state(look, &mut conditions, kind, state, since);
    };
    let created = pool.status.initialization.bootstrap_data_secret_created == Some(true);
    let kind = &pool.spec.template.spec.bootstrap.config_ref.kind;
    let (state, since) =
        machines::bootstrap_ready(&look.seen.bootstrap, kind, created, pool.metadata.is_deleting());
    set(condition::BOOTSTRAP_CONFIG_READY, state, since);
    let (state, since) = infrastructure_ready(look, &pool);
    set(condition::INFRASTRUCTURE_READY, state, since);
    set(own::REPLICAS_READY, replicas_ready(&pool), None);
    let deleting = deleting.unwrap_or_else(|| ConditionState::new(False, reason::NOT_DELETING, ""));
    set(condition::DELETING, deleting, None);
    let ready = ready(&conditions);
    conditions::set_state(look, &mut conditions, condition::READY, ready, None);
    decision.object.status.conditions = conditions;
    decision.object.status.observed_generation = look.object.metadata.generation;
}

/// The first condition that does not hold.
fn ready(conditions: &[Condition]) -> ConditionState {
    let parts = [condition::BOOTSTRAP_CONFIG_READY, condition::INFRASTRUCTURE_READY, own::REPLICAS_READY];
    let open = parts
        .iter()
        .filter_map(|kind| conditions.iter().find(|condition| condition.kind == **kind))
        .find(|part| part.status != True);
    match open {
        None => ConditionState::new(True, reason::READY, ""),
        Some(part) => {
            let message = match part.message.as_str() {
                "" => format!("* {}: {}", part.kind, part.reason),
                message => format!("* {}: {message}", part.kind),
            };
            let reason = if part.status == False { reason::NOT_READY } else { reason::READY_UNKNOWN };
            ConditionState::new(part.status, reason, message)
        }
    }
}

/// From Machines if the provider has them, else from what the provider reports, as upstream.
fn counters(look: &Looked, decision: &mut Decided) {
    if look.seen.infrastructure.object().is_none() {
        return;
    }
    let pool = &mut decision.object;
    if look.seen.infrastructure_machines.is_none() {
        pool.status.ready_replicas = pool.status.replicas;
        pool.status.available_replicas = pool.status.replicas;
        pool.status.up_to_date_replicas = pool.spec.replicas;
        let ObservedNodes::Known { by_id, .. } = &look.seen.nodes else { return };
        let found = pool.spec.provider_id_list.iter().filter_map(|id| by_id.get(id)).map(|node| {
            StatusVersion { version: node.status.node_info.kubelet_version.clone(), replicas: 1 }
        });
        pool.status.versions = added_versions(found);
        return;
    }
    let count = |kind: &str| {
        let holds = look.seen.machines.iter().filter(|it| it.status.conditions.is_condition_true(kind));
        i32::try_from(holds.count()).ok()
    };
    pool.status.ready_replicas = count(condition::READY);
    pool.status.available_replicas = count(condition::AVAILABLE);
    pool.status.up_to_date_replicas = count(machine_condition::UP_TO_DATE);
    pool.status.versions = versions(&look.seen.machines);
}

fn ready_nodes(pool: &MachinePool) -> i32 {
    let old = pool.status.deprecated.as_ref().and_then(|deprecated| deprecated.v1beta1.as_ref());
    old.map_or(0, |old| old.ready_replicas)
}

fn phase(pool: &MachinePool) -> MachinePoolPhase {
    let status = &pool.status;
    let provisioned = status.initialization.infrastructure_provisioned == Some(true);
    let mut phase = status.phase.unwrap_or(MachinePoolPhase::Pending);
    if status.initialization.bootstrap_data_secret_created == Some(true) && !provisioned {
        phase = MachinePoolPhase::Provisioning;
    }
    if !status.node_refs.is_empty() {
        phase = MachinePoolPhase::Provisioned;
    }
    if let (true, Some(wanted)) = (provisioned, pool.spec.replicas) {
        let ready = ready_nodes(pool);
        let managed = pool.metadata.annotations.get(annotation::REPLICAS_MANAGED_BY);
        let managed = managed.is_some_and(|by| by != "false");
        phase = match wanted.cmp(&ready) {
            std::cmp::Ordering::Equal => MachinePoolPhase::Running,
            _ if managed => MachinePoolPhase::Scaling,
            std::cmp::Ordering::Greater => MachinePoolPhase::ScalingUp,
            std::cmp::Ordering::Less => MachinePoolPhase::ScalingDown,
        };
    }
    if pool.metadata.is_deleting() {
        phase = MachinePoolPhase::Deleting;
    }
    phase
}

/// What is missing, and what to do about it.
pub(super) fn missing_infrastructure(look: &Looked) -> String {
    let reference = &look.object.spec.template.spec.infrastructure_ref;
    if look.seen.infrastructure_kind_exists {
        return format!("{} {} does not exist", reference.kind, reference.name);
    }
    format!(
        "there is no kind {} in {}: the infrastructure provider is not installed or has no machine pools; use a \
         MachineDeployment instead",
        reference.kind, reference.api_group
    )
}

fn infrastructure_ready(look: &Looked, pool: &MachinePool) -> (ConditionState, Option<Time>) {
    let kind = &pool.spec.template.spec.infrastructure_ref.kind;
    let provisioned = pool.status.initialization.infrastructure_provisioned == Some(true);
    let state = match &look.seen.infrastructure {
        // A template has no machines, so it never becomes ready.
        Lookup::Object(_) if kind.ends_with(TEMPLATE_SUFFIX) => {
            let message = format!(
                "{kind} is a template and no machine pool: spec.template.spec.infrastructureRef must name the provider's \
                 pool itself"
            );
            ConditionState::new(False, own_reason::NOT_A_MACHINE_POOL, message)
        }
        Lookup::Object(object) => {
            let message = format!("{kind} status.initialization.provisioned is {provisioned}");
            let fallback =
                Fallback { flag: provisioned, holds: reason::READY, fails: reason::NOT_READY, message };
            return conditions::mirrored(object.conditions(), condition::READY, fallback);
        }
        Lookup::NotReferenced => ConditionState::new(
            Unknown,
            reason::INTERNAL_ERROR,
            "spec.template.spec.infrastructureRef is empty",
        ),
        Lookup::Unusable(why) => ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone()),
        Lookup::Missing if provisioned && pool.metadata.is_deleting() => {
            ConditionState::new(False, reason::OBJECT_DELETED, format!("{kind} has been deleted"))
        }
        Lookup::Missing if provisioned => ConditionState::new(
            False,
            reason::OBJECT_DELETED,
            format!("{kind} has been deleted while the MachinePool still exists"),
        ),
        Lookup::Missing if !look.seen.infrastructure_kind_exists => {
            ConditionState::new(False, own_reason::MACHINE_POOLS_NOT_SUPPORTED, missing_infrastructure(look))
        }
        Lookup::Missing => {
            ConditionState::new(False, reason::OBJECT_DOES_NOT_EXIST, missing_infrastructure(look))
        }
    };
    (state, None)
}

fn replicas_ready(pool: &MachinePool) -> ConditionState {
    let (wanted, ready) = (pool.status.replicas.unwrap_or(0), ready_nodes(pool));
    let provisioned = pool.status.initialization.infrastructure_provisioned == Some(true);
    if provisioned && wanted == ready && pool.status.node_refs.len() == usize::try_from(ready).unwrap_or(0) {
        return ConditionState::new(True, reason::READY, "");
    }
    let message = format!("{ready} of {wanted} replicas are ready");
    ConditionState::new(False, own_reason::WAITING_FOR_REPLICAS_READY, message)
}
