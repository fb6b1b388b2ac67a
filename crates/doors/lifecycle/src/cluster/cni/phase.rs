//! The phase that installs the CNI.

use std::time::Duration;

use capstan_capi_addons::cluster_resource_set::ConfigMapOutline;
use capstan_capi_types::addons::{ClusterResourceSetResourceKind as ResourceKind, ResourceRef};
use capstan_controller::{Effect, KindName, Note, ObjectRef, Wait};
use capstan_object::{Key, OwnerReference};
use capstan_provider_kit::SecretOutline;
use serde_json::json;

use super::super::phases::{Applies, Flow, Round};
use super::state::{self, Record};
use super::step::{self, Situation, Step};
use super::{Called, CniCall};
use crate::cni::{Manifests, Plan, part, resource_set};
use crate::code;
use crate::names::{self, SYSTEM_NAMESPACE, annotation};

/// How long until the workload cluster is asked again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a failure counts.
const RETRY: Duration = Duration::from_secs(30);

fn kind(part: &ResourceRef) -> KindName {
    match part.kind {
        Some(ResourceKind::Secret) => KindName::of::<SecretOutline>(),
        _ => KindName::of::<ConfigMapOutline>(),
    }
}

pub(in crate::cluster) fn cni(round: &mut Round<'_>) -> Flow {
    let (cluster, current) = (&round.look.object, &round.look.seen.current);
    if state::is_left(cluster, current) {
        return Flow::Next;
    }
    let plan = match round.settings.cni.plan(cluster) {
        Ok(plan) => plan,
        Err(why) => return round.fail("ClusterInvalid", code::INVALID, why),
    };
    let digest = plan.digest();
    let situation = Situation {
        installed: state::recorded(cluster, current).is_some(),
        recorded: state::is_recorded(cluster, current, &digest),
        applied: state::is_applied(cluster, current),
        marked: state::is_marked(cluster, current),
        has_preflight: plan.has_preflight(),
        seen: &round.look.seen.cni,
    };
    match step::next(&situation) {
        Step::Done => keep(round),
        Step::Write(manifests) => write(round, manifests, &digest, situation.marked),
        Step::Mark => {
            mark(round, Some(&digest));
            waits(round, &plan, "the preflight check is being created".to_owned())
        }
        Step::StartPreflight => {
            let call = CniCall::StartPreflight { digest };
            let note =
                Note::normal("CNIPreflight", "Apply", "Checking a new version of Cilium on every node");
            match called(round, &call) {
                Some(errors) if errors.is_empty() => {
                    waits(round, &plan, "the preflight check is being created".to_owned())
                }
                Some(errors) => waits(round, &plan, errors.join("; ")),
                None => {
                    round.decision.then_noting(Effect::Call(call), note);
                    waits(round, &plan, "the preflight check is being created".to_owned())
                }
            }
        }
        Step::EndPreflight => {
            let call = CniCall::EndPreflight { digest };
            match called(round, &call) {
                Some(errors) if errors.is_empty() => mark(round, None),
                Some(errors) => {
                    let what = format!("the preflight check to be deleted: {}", errors.join("; "));
                    round.decision.wait(Wait::on("DeletingPreflight", what)).again_in(RETRY);
                }
                None => drop(round.decision.best_effort(Effect::Call(call))),
            }
            keep(round)
        }
        Step::Wait(what) => waits(round, &plan, what),
        Step::WaitForControlPlane => {
            round.stop("WaitingForControlPlane", "the control plane to be available for the CNI")
        }
        Step::Fail(why) => {
            let what = format!("the manifests of {} cannot be rendered: {why}", plan.network.title());
            round.cni = Some(("DefaultCNIInvalid", format!("{}: {what}", code::CNI)));
            round.decision.again_in(RETRY);
            round.fail("DefaultCNIInvalid", code::CNI, what)
        }
    }
}

/// The errors of a call, if it was made.
fn called(round: &Round<'_>, call: &CniCall) -> Option<Vec<String>> {
    let result = round.look.result_of(call)?;
    Some(serde_json::from_value::<Called>(result.clone()).unwrap_or_default().errors)
}

/// The version waits for the workload cluster, and so do the phases after this.
fn waits(round: &mut Round<'_>, plan: &Plan, what: String) -> Flow {
    let message = format!("{} version upgrade needed: {what}", plan.network.title());
    round.cni = Some((state::UPGRADING, message.clone()));
    round.decision.again_in(AGAIN);
    round.stop("UpgradingCNI", &message)
}

/// The add-on stays as it is.
fn keep(round: &mut Round<'_>) -> Flow {
    let (cluster, current) = (&round.look.object, &round.look.seen.current);
    let Some(owner) = &current.cluster else { return Flow::Stop };
    let Some(record) = state::recorded(cluster, current) else { return Flow::Stop };
    let set = resource_set(cluster, record.parts);
    Applies { decision: &mut round.decision, owner: Some(OwnerReference::to(&**owner)) }
        .apply(set, current.cni.as_ref());
    Flow::Next
}

/// Writes the add-on: its first ConfigMap is last, since it records what all of them are made from.
fn write(round: &mut Round<'_>, manifests: &Manifests, digest: &str, marked: bool) -> Flow {
    let (cluster, current) = (&round.look.object, &round.look.seen.current);
    let Some(owner) = &current.cluster else { return Flow::Stop };
    let owner = OwnerReference::to(&**owner);
    let parts = manifests.parts();
    let mut effects = Applies { decision: &mut round.decision, owner: Some(owner.clone()) };
    let references = parts.of(cluster);
    let first = names::cni(&cluster.metadata.name);
    for (reference, text) in references.iter().zip(manifests.texts()).rev() {
        let mut body = part(cluster, reference, text);
        body["metadata"]["ownerReferences"] = json!([owner]);
        if reference.name == first {
            body["metadata"]["annotations"][annotation::APPLIED] = Record { digest, parts }.text().into();
            if marked {
                body["metadata"]["annotations"][annotation::CNI_PREFLIGHT] = digest.into();
            }
        }
        let kind = kind(reference);
        let title = kind.kind.clone();
        effects.push(&title, kind, body, current.cni_parts.get(&reference.name));
    }
    effects.apply(resource_set(cluster, parts), current.cni.as_ref());
    let before = current.cni.iter().flat_map(|set| &set.spec.resources);
    for left in before.filter(|left| !references.contains(left)) {
        if let Some(meta) = current.cni_parts.get(&left.name) {
            let target = ObjectRef::new(kind(left), meta.key());
            round.decision.then(Effect::delete_seen(target, meta));
        }
    }
    Flow::Next
}

/// Marks the add-on, or takes its mark away.
fn mark(round: &mut Round<'_>, digest: Option<&str>) {
    let (cluster, current) = (&round.look.object, &round.look.seen.current);
    let name = names::cni(&cluster.metadata.name);
    let Some(first) = current.cni_parts.get(&name) else { return };
    let target = ObjectRef::new(KindName::of::<ConfigMapOutline>(), Key::new(SYSTEM_NAMESPACE, name));
    let change = json!({"metadata": {"annotations": {annotation::CNI_PREFLIGHT: digest}}});
    round.decision.then(Effect::merge_guarded(target, first, change));
}
