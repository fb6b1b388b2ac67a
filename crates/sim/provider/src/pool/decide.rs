//! Decisions about SimMachinePools.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::conditions::shortened;
use capstan_capi_core::machines::is_to_be_remediated;
use capstan_capi_core::names::{LOOK_AHEAD, Names, joined};
use capstan_capi_types::core::{Cluster, MachinePool, label, reason};
use capstan_controller::{Effect, Look, Note, ObjectRef, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Object, ObjectMeta, OwnerReference};
use capstan_provider_kit::decisions::ready;
use capstan_provider_kit::{Infrastructure, decide_pool};
use serde_json::json;

use super::member::{is_ready, is_unwanted};
use super::{FINALIZER, Member, SimMachinePools, VERSION};
use crate::template::offered;
use crate::types::{SimMachine, SimMachineSpec};

type Decision = capstan_controller::Decision<SimMachinePools>;
type Looked = Look<SimMachinePools>;

/// Maximum number of machines in a message.
const SHOWN: usize = 3;

pub(super) fn decide(look: &Looked) -> Decision {
    let owners = look.seen.pool.as_ref().zip(look.seen.cluster.as_ref());
    let keep = owners
        .map(|(pool, cluster)| |look: &Looked, decision: &mut Decision| keep(look, pool, cluster, decision));
    decide_pool(look, Infrastructure::conditions_mut, delete, keep)
}

impl Member {
    fn is_deleting(&self) -> bool {
        let machine = self.machine.as_ref().is_some_and(|machine| machine.metadata.is_deleting());
        machine || self.infrastructure.metadata.is_deleting()
    }

    fn is_ready(&self) -> bool {
        self.machine.as_deref().is_some_and(is_ready)
    }

    /// Made of the current template and version. The pool assigns the failure domain if the template has none.
    fn is_current(&self, template: &SimMachineSpec, version: &str) -> bool {
        let mut made = self.infrastructure.spec.clone();
        made.provider_id.clear();
        if template.failure_domain.is_empty() {
            made.failure_domain.clear();
        }
        let of = self.infrastructure.metadata.annotations.get(VERSION).map_or("", String::as_str);
        made == *template && of == version
    }

    /// Deletes the Machine, which drains its node and then deletes the SimMachine; without one, the SimMachine.
    fn delete(&self) -> Effect<capstan_controller::NoCall> {
        match &self.machine {
            Some(machine) => Effect::delete(machine.as_ref()),
            None => Effect::delete(self.infrastructure.as_ref()),
        }
    }
}

fn keep(look: &Looked, pool: &MachinePool, cluster: &Cluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let kind = SimMachine::KIND.kind;
    decision.object.status.infrastructure_machine_kind = kind.to_owned();
    let offered = offered(&look.object.spec.template);
    decision.object.status.capacity = offered.capacity;
    decision.object.status.node_info = offered.node_info;
    report(look, pool, decision);
    clear_abandoned(look, decision);
    adopt(look, decision);
    if let Some((reason, what)) = waits_for(pool, cluster) {
        decision.wait(Wait::on(reason, what));
        ready(look, decision, False, reason, format!("Waiting for {what}"));
        return;
    }
    let template = &look.object.spec.template;
    let version = pool.spec.template.spec.version.as_str();
    let live: Vec<&Member> = look.seen.members.iter().filter(|member| !member.is_deleting()).collect();
    let (current, outdated): (Vec<&Member>, Vec<&Member>) =
        live.iter().copied().partition(|member| member.is_current(template, version));
    let wanted = wanted(pool);
    let mut unwanted: Vec<&Member> = live
        .iter()
        .copied()
        .filter(|member| member.machine.as_deref().is_some_and(is_to_be_remediated))
        .collect();
    // One more than wanted while machines are replaced.
    let most = wanted + usize::from(!outdated.is_empty());
    let missing = most.saturating_sub(live.len()).min(wanted.saturating_sub(current.len()));
    create(look, pool, missing, decision);
    let ready_current = current.iter().filter(|member| member.is_ready()).count();
    // As many outdated machines stay as are needed until current ones are ready.
    let replaceable = (ready_current + outdated.len()).saturating_sub(wanted).min(outdated.len());
    unwanted.extend(in_order(&outdated).into_iter().take(replaceable));
    unwanted.extend(in_order(&current).into_iter().take(current.len().saturating_sub(wanted)));
    unwanted.sort_by(|a, b| a.infrastructure.metadata.name.cmp(&b.infrastructure.metadata.name));
    unwanted.dedup_by(|a, b| a.infrastructure.metadata.name == b.infrastructure.metadata.name);
    for member in &unwanted {
        let message = format!("machine {} is deleted", member.infrastructure.metadata.name);
        decision.best_effort_noting(member.delete(), Note::normal("MachineDeleted", "Delete", message));
    }
    condition(look, decision, (wanted, current.len(), ready_current), &outdated);
}

/// Those to delete first: asked for by annotation, then not ready, then by name.
fn in_order<'a>(members: &[&'a Member]) -> Vec<&'a Member> {
    let mut members = members.to_vec();
    members.sort_by_key(|member| {
        let asked = member.machine.as_deref().is_some_and(is_unwanted);
        (!asked, member.is_ready(), member.infrastructure.metadata.name.clone())
    });
    members
}

fn wanted(pool: &MachinePool) -> usize {
    pool.spec.replicas.map_or(1, |replicas| usize::try_from(replicas).unwrap_or(0))
}

/// What must exist before machines are created: a reason and a message.
fn waits_for(pool: &MachinePool, cluster: &Cluster) -> Option<(&'static str, &'static str)> {
    if cluster.metadata.is_deleting() || pool.metadata.is_deleting() {
        return Some((reason::DELETING, "the deletion of the pool"));
    }
    if cluster.status.initialization.infrastructure_provisioned != Some(true) {
        return Some((reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, "the infrastructure of the cluster"));
    }
    let secret = pool.spec.template.spec.bootstrap.data_secret_name.as_ref();
    if secret.is_none_or(String::is_empty) {
        return Some((reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the pool"));
    }
    None
}

/// Deletes Machines that were created for a SimMachine just before it went.
fn clear_abandoned(look: &Looked, decision: &mut Decision) {
    for machine in look.seen.abandoned.iter().filter(|machine| !machine.metadata.is_deleting()) {
        decision.best_effort(Effect::delete(machine.as_ref()));
    }
}

fn adopt(look: &Looked, decision: &mut Decision) {
    for member in &look.seen.members {
        let meta = &member.infrastructure.metadata;
        if !meta.is_owned_by(&look.object.metadata.uid) {
            let mut owners = meta.owner_references.clone();
            owners.push(OwnerReference::to(look.object.as_ref()));
            let change = json!({"metadata": {"ownerReferences": owners}});
            let target = ObjectRef::to(member.infrastructure.as_ref());
            decision.best_effort(Effect::merge_guarded(target, meta, change));
        }
    }
}

fn create(look: &Looked, pool: &MachinePool, count: usize, decision: &mut Decision) {
    let meta = &look.object.metadata;
    let names = Names::of(meta, |suffix| {
        let name = joined(&meta.name, suffix);
        look.seen.members.iter().any(|member| member.infrastructure.metadata.name == name)
    });
    names.record(&mut decision.object.metadata);
    let mut domains: BTreeMap<&str, usize> =
        pool.spec.failure_domains.iter().map(|domain| (domain.as_str(), 0)).collect();
    for member in &look.seen.members {
        if let Some(used) = domains.get_mut(member.infrastructure.spec.failure_domain.as_str()) {
            *used += 1;
        }
    }
    let count = count.min(usize::try_from(LOOK_AHEAD).unwrap_or(usize::MAX));
    for suffix in names.upcoming().take(count) {
        let mut spec = look.object.spec.template.clone();
        let least = domains.iter_mut().min_by_key(|(name, used)| (**used, **name));
        if let (true, Some((domain, used))) = (spec.failure_domain.is_empty(), least) {
            spec.failure_domain = (*domain).to_owned();
            *used += 1;
        }
        let mut metadata = ObjectMeta::named(meta.namespace.clone(), joined(&meta.name, &suffix));
        metadata.labels.insert(label::CLUSTER_NAME.to_owned(), pool.spec.cluster_name.clone());
        metadata.labels.insert(label::POOL_NAME.to_owned(), label::value(&pool.metadata.name));
        metadata.annotations.insert(VERSION.to_owned(), pool.spec.template.spec.version.clone());
        // The Machine becomes the controller.
        metadata.owner_references = vec![OwnerReference::to(look.object.as_ref())];
        let message = format!("machine {} is created", metadata.name);
        let machine = SimMachine { metadata, spec, ..SimMachine::default() };
        decision.then_noting(Effect::create(&machine), Note::normal("MachineCreated", "Create", message));
    }
}

/// Sets the provider ids and the number of machines. A pool that was complete once is provisioned.
fn report(look: &Looked, pool: &MachinePool, decision: &mut Decision) {
    let live: Vec<&Arc<SimMachine>> = look
        .seen
        .members
        .iter()
        .filter(|member| !member.is_deleting())
        .map(|member| &member.infrastructure)
        .collect();
    let own = &mut decision.object;
    let mut ids: Vec<String> = live.iter().map(|machine| machine.spec.provider_id.clone()).collect();
    ids.retain(|id| !id.is_empty());
    ids.sort();
    let complete = live.iter().filter(|machine| machine.provisioned() == Some(true)).count() >= wanted(pool);
    own.spec.provider_id_list = ids;
    own.status.replicas = i32::try_from(live.len()).ok();
    if complete && has_data(pool) {
        own.status.initialization.provisioned = Some(true);
        own.status.ready = Some(true);
    }
}

fn has_data(pool: &MachinePool) -> bool {
    pool.spec.template.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty())
}

fn condition(
    look: &Looked,
    decision: &mut Decision,
    (wanted, current, ready_current): (usize, usize, usize),
    outdated: &[&Member],
) {
    if outdated.is_empty() && current == wanted && ready_current == wanted {
        return ready(look, decision, True, "Running", "");
    }
    if !outdated.is_empty() {
        let names: Vec<&str> =
            outdated.iter().map(|member| member.infrastructure.metadata.name.as_str()).collect();
        let message = format!("machines are replaced: {}", shortened(&names, SHOWN));
        return ready(look, decision, False, "Replacing", message);
    }
    let message = format!("{ready_current} of {wanted} machines are ready");
    ready(look, decision, False, "Scaling", message);
}

fn delete(look: &Looked, decision: &mut Decision) {
    clear_abandoned(look, decision);
    for member in look.seen.members.iter().filter(|member| !member.is_deleting()) {
        decision.best_effort(member.delete());
    }
    let mut names: Vec<&str> =
        look.seen.members.iter().map(|member| member.infrastructure.metadata.name.as_str()).collect();
    names.extend(look.seen.abandoned.iter().map(|machine| machine.metadata.name.as_str()));
    if names.is_empty() {
        decision.remove_finalizer(FINALIZER);
        return;
    }
    let what = format!("machines {} to be deleted", shortened(&names, SHOWN));
    decision.wait(Wait::on("WaitingForMachines", what.as_str()));
    ready(look, decision, False, reason::DELETING, format!("Waiting for {what}"));
    decision.object.status.replicas = Some(0);
}
