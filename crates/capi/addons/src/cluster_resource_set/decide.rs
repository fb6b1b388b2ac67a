//! Decides about a ClusterResourceSet.

use std::time::Duration;

use capstan_capi_core::secret::SecretOutline;
use capstan_capi_core::{conditions, owners, paused};
use capstan_capi_types::addons::cluster_resource_set::{FINALIZER, condition, reason as own};
use capstan_capi_types::addons::{
    ClusterResourceSetBinding, ClusterResourceSetBindingSpec, ClusterResourceSetResourceKind as ResourceKind,
    ClusterResourceSetStrategy as Strategy, ResourceBinding, ResourceRef, ResourceSetBinding,
};
use capstan_capi_types::core::{condition as shared, reason};
use capstan_controller::{Decision, Effect, KindName, Look, ObjectRef, Wait};
use capstan_object::{ConditionStatus, Key, ObjectMeta, OwnerReference, Time};
use serde_json::json;

use super::observed::{Resource, Target, is_applied};
use super::resources::ConfigMapOutline;
use super::{Applied, Apply, ClusterResourceSetController};
use conditions::ConditionState;

/// Requeue interval after a failure.
const AGAIN: Duration = Duration::from_secs(30);

pub(super) fn decide(look: &Look<ClusterResourceSetController>) -> Decision<ClusterResourceSetController> {
    let mut decision = Decision::rest(look);
    let set = &look.object;
    if !set.metadata.is_deleting() {
        decision.add_finalizer(FINALIZER);
    }
    let state = paused::condition(look.paused.as_deref());
    conditions::set_state(look, &mut decision.object.status.conditions, shared::PAUSED, state, None);
    if look.paused.is_some() {
        return decision;
    }
    let state = if let Some(why) = &look.seen.bad_selector {
        Some(ConditionState::new(ConditionStatus::False, reason::INTERNAL_ERROR, why.clone()))
    } else if set.metadata.is_deleting() {
        unbind(look, &mut decision);
        None
    } else {
        apply(look, &mut decision)
    };
    if let Some(state) = state {
        if state.status != ConditionStatus::True {
            decision.wait(Wait::on(&state.reason, state.message.clone())).again_in(AGAIN);
        }
        conditions::set_state(
            look,
            &mut decision.object.status.conditions,
            condition::RESOURCES_APPLIED,
            state,
            None,
        );
    }
    decision.object.status.observed_generation = set.metadata.generation;
    decision
}

/// Removes the set from every binding, and deletes bindings without sets.
fn unbind(look: &Look<ClusterResourceSetController>, decision: &mut Decision<ClusterResourceSetController>) {
    let ours = OwnerReference::to(&*look.object);
    for binding in look.seen.targets.iter().filter_map(|target| target.binding.as_ref()) {
        let name = &look.object.metadata.name;
        let entry = |entry: &ResourceSetBinding| entry.cluster_resource_set_name == *name;
        let owned = binding.metadata.owner_references.iter().any(|owner| owner.same_owner(&ours));
        if !owned && !binding.spec.bindings.iter().any(entry) {
            continue;
        }
        let left: Vec<_> = binding.spec.bindings.iter().filter(|other| !entry(other)).collect();
        if left.is_empty() {
            if !binding.metadata.is_deleting() {
                decision.then(Effect::delete(&**binding));
            }
            continue;
        }
        let owners: Vec<_> =
            binding.metadata.owner_references.iter().filter(|owner| !owner.same_owner(&ours)).collect();
        let change = json!({"metadata": {"ownerReferences": owners}, "spec": {"bindings": left}});
        decision.then(Effect::merge_guarded(ObjectRef::to(&**binding), &binding.metadata, change));
    }
    decision.remove_finalizer(FINALIZER);
}

/// Applies resources and records them in bindings. Returns the `ResourcesApplied` condition.
fn apply(
    look: &Look<ClusterResourceSetController>,
    decision: &mut Decision<ClusterResourceSetController>,
) -> Option<ConditionState> {
    let failed = |reason: &str, message: String| ConditionState::new(ConditionStatus::False, reason, message);
    let mut failure: Option<ConditionState> = None;
    let mut usable = true;
    for (reference, resource) in look.object.spec.resources.iter().zip(&look.seen.resources) {
        match resource {
            Resource::Found { meta, .. } => own_resource(look, decision, reference, meta),
            // The others are still applied.
            Resource::Missing => {
                let message = format!("{} {} does not exist", kind(reference), reference.name);
                failure = failure.or_else(|| Some(failed(reason::INTERNAL_ERROR, message)));
            }
            Resource::WrongType => {
                usable = false;
                let message = format!("Secret type of resource {} is not supported", reference.name);
                failure = Some(failed(own::WRONG_SECRET_TYPE, message));
            }
        }
    }
    if !usable || look.seen.targets.is_empty() {
        return failure;
    }
    for target in &look.seen.targets {
        if let Some(state) = to_cluster(look, decision, target) {
            failure = Some(state);
        }
    }
    failure.or_else(|| Some(ConditionState::new(ConditionStatus::True, own::APPLIED, "")))
}

fn kind(reference: &ResourceRef) -> &'static str {
    reference.kind.map_or("", ResourceKind::as_str)
}

/// Adds an owner reference, so that changes of the resource trigger the set and `clusterctl move` takes it along.
fn own_resource(
    look: &Look<ClusterResourceSetController>,
    decision: &mut Decision<ClusterResourceSetController>,
    reference: &ResourceRef,
    meta: &ObjectMeta,
) {
    let mut owners = meta.owner_references.clone();
    if !owners::ensure(&mut owners, OwnerReference::to(&*look.object)) {
        return;
    }
    let name = match reference.kind {
        Some(ResourceKind::Secret) => KindName::of::<SecretOutline>(),
        _ => KindName::of::<ConfigMapOutline>(),
    };
    let change = json!({"metadata": {"ownerReferences": owners}});
    decision.best_effort(Effect::merge_guarded(ObjectRef::new(name, meta.key()), meta, change));
}

/// Applies resources to one cluster and updates its binding. Returns the first problem.
fn to_cluster(
    look: &Look<ClusterResourceSetController>,
    decision: &mut Decision<ClusterResourceSetController>,
    target: &Target,
) -> Option<ConditionState> {
    let set = &look.object;
    let strategy = set.spec.strategy.unwrap_or(Strategy::ApplyOnce);
    let empty = ResourceSetBinding {
        cluster_resource_set_name: set.metadata.name.clone(),
        ..ResourceSetBinding::default()
    };
    let bindings = target.binding.as_ref().map(|binding| binding.spec.bindings.clone()).unwrap_or_default();
    let before = bindings.iter().find(|entry| entry.cluster_resource_set_name == set.metadata.name);
    let mut entry = before.cloned().unwrap_or(empty);
    let mut failure = None;
    let mut applies = Vec::new();
    for (reference, resource) in set.spec.resources.iter().zip(&look.seen.resources) {
        let (Resource::Found { hash, .. }, Some(kind)) = (resource, reference.kind) else { continue };
        let hash = match hash {
            Ok(hash) => hash,
            Err(why) => {
                note(look, &mut entry, reference, "", false);
                failure =
                    Some(ConditionState::new(ConditionStatus::False, reason::INTERNAL_ERROR, why.clone()));
                continue;
            }
        };
        if is_applied(&entry, reference, strategy, hash) {
            continue;
        }
        let apply = Apply {
            cluster: target.cluster.clone(),
            kind,
            name: reference.name.clone(),
            hash: hash.clone(),
            strategy,
        };
        match look.result_of(&apply) {
            Some(result) => {
                let result: Applied = serde_json::from_value(result.clone()).unwrap_or_default();
                note(look, &mut entry, reference, hash, result.errors.is_empty());
                if !result.errors.is_empty() {
                    let message = format!(
                        "Failed to apply ClusterResourceSet resources to Cluster: {}",
                        result.errors.join("; ")
                    );
                    failure = Some(ConditionState::new(ConditionStatus::False, own::NOT_APPLIED, message));
                }
            }
            None => applies.push(apply),
        }
    }
    bind(look, decision, target, bindings, entry);
    if let Some(why) = &target.unreachable {
        if !applies.is_empty() {
            failure = Some(ConditionState::new(ConditionStatus::False, reason::INTERNAL_ERROR, why.clone()));
        }
        return failure;
    }
    for apply in applies {
        decision.best_effort(Effect::Call(apply));
    }
    failure
}

/// Records the result for a resource; an unchanged entry keeps its timestamp.
fn note(
    look: &Look<ClusterResourceSetController>,
    entry: &mut ResourceSetBinding,
    reference: &ResourceRef,
    hash: &str,
    applied: bool,
) {
    let known =
        entry.resources.iter_mut().find(|known| known.kind == reference.kind && known.name == reference.name);
    let fresh = ResourceBinding {
        name: reference.name.clone(),
        kind: reference.kind,
        hash: hash.to_owned(),
        last_applied_time: Some(Time::new(look.now)),
        applied: Some(applied),
    };
    match known {
        Some(known) if known.hash == hash && known.applied == Some(applied) => {}
        Some(known) => *known = fresh,
        None => entry.resources.push(fresh),
    }
}

/// Creates or changes the binding of a cluster.
fn bind(
    look: &Look<ClusterResourceSetController>,
    decision: &mut Decision<ClusterResourceSetController>,
    target: &Target,
    mut bindings: Vec<ResourceSetBinding>,
    entry: ResourceSetBinding,
) {
    let set = &look.object;
    match bindings.iter_mut().find(|known| known.cluster_resource_set_name == set.metadata.name) {
        Some(known) => *known = entry,
        None => bindings.push(entry),
    }
    let Some(binding) = &target.binding else {
        let key = Key::new(set.metadata.namespace.as_str(), target.cluster.as_str());
        let mut metadata = ObjectMeta::named(key.namespace, key.name);
        metadata.owner_references = vec![OwnerReference::to(&**set)];
        let spec = ClusterResourceSetBindingSpec { bindings, cluster_name: target.cluster.clone() };
        decision.then(Effect::create(&ClusterResourceSetBinding { metadata, spec }));
        return;
    };
    let mut owners = binding.metadata.owner_references.clone();
    let owned = owners::ensure(&mut owners, OwnerReference::to(&**set));
    if !owned && bindings == binding.spec.bindings {
        return;
    }
    let change = json!({"metadata": {"ownerReferences": owners}, "spec": {"bindings": bindings}});
    decision.then(Effect::merge_guarded(ObjectRef::to(&**binding), &binding.metadata, change));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use capstan_capi_types::addons::ClusterResourceSet;
    use capstan_capi_types::core::Cluster;
    use capstan_controller::{Concluded, Controller};
    use capstan_object::{Conditions, LabelSelector};
    use jiff::Timestamp;

    use super::super::Observed;
    use super::super::observed::selects;

    fn set(strategy: Strategy) -> ClusterResourceSet {
        let mut set =
            ClusterResourceSet { metadata: ObjectMeta::named("n", "set"), ..ClusterResourceSet::default() };
        set.metadata.finalizers = vec![FINALIZER.to_owned()];
        set.metadata.uid = "set-uid".to_owned();
        set.spec.strategy = Some(strategy);
        set.spec.resources = vec![ResourceRef { name: "cm".to_owned(), kind: Some(ResourceKind::ConfigMap) }];
        set
    }

    fn found(hash: &str) -> Resource {
        let mut meta = ObjectMeta::named("n", "cm");
        meta.owner_references = vec![OwnerReference::to(&set(Strategy::ApplyOnce))];
        Resource::Found { meta: Box::new(meta), hash: Ok(hash.to_owned()) }
    }

    fn binding(resources: Vec<ResourceBinding>) -> Option<Arc<ClusterResourceSetBinding>> {
        let mut metadata = ObjectMeta::named("n", "c");
        metadata.owner_references = vec![OwnerReference::to(&set(Strategy::ApplyOnce))];
        let bindings = vec![ResourceSetBinding { cluster_resource_set_name: "set".to_owned(), resources }];
        let spec = ClusterResourceSetBindingSpec { bindings, cluster_name: "c".to_owned() };
        Some(Arc::new(ClusterResourceSetBinding { metadata, spec }))
    }

    fn applied(hash: &str, applied: bool) -> Vec<ResourceBinding> {
        vec![ResourceBinding {
            name: "cm".to_owned(),
            kind: Some(ResourceKind::ConfigMap),
            hash: hash.to_owned(),
            last_applied_time: Some(Timestamp::UNIX_EPOCH.into()),
            applied: Some(applied),
        }]
    }

    fn look(
        set: ClusterResourceSet,
        resource: Resource,
        binding: Option<Arc<ClusterResourceSetBinding>>,
    ) -> Look<ClusterResourceSetController> {
        let target = Target { cluster: "c".to_owned(), binding, unreachable: None };
        let seen = Observed { bad_selector: None, targets: vec![target], resources: vec![resource] };
        Look::new(Arc::new(set), seen, Timestamp::UNIX_EPOCH)
    }

    fn summaries(look: &Look<ClusterResourceSetController>) -> (Vec<String>, Option<String>) {
        let decision = ClusterResourceSetController::default().decide(look);
        let effects = decision.effects.iter().map(|planned| planned.effect.summary()).collect();
        let condition = decision.object.status.conditions.condition(condition::RESOURCES_APPLIED);
        (effects, condition.map(|condition| condition.reason.clone()))
    }

    #[test]
    fn resources_are_applied_once_or_again_when_they_change() {
        let apply = || vec!["apply ConfigMap cm to cluster c".to_owned()];
        for (strategy, known, hash, expected) in [
            (Strategy::ApplyOnce, applied("h", true), "h", vec![]),
            (Strategy::ApplyOnce, applied("h", true), "changed", vec![]),
            (Strategy::ApplyOnce, applied("h", false), "h", apply()),
            (Strategy::ApplyOnce, vec![], "h", apply()),
            (Strategy::Reconcile, applied("h", true), "h", vec![]),
            (Strategy::Reconcile, applied("h", true), "changed", apply()),
            (Strategy::Reconcile, applied("h", false), "h", apply()),
        ] {
            let look = look(set(strategy), found(hash), binding(known));
            assert_eq!(summaries(&look).0, expected, "{strategy} {hash}");
        }
    }

    #[test]
    fn the_binding_is_written_first_and_records_each_resource() {
        let (effects, _) = summaries(&look(set(Strategy::ApplyOnce), found("h"), None));
        assert_eq!(
            effects,
            [
                "create clusterresourcesetbindings.addons.cluster.x-k8s.io c",
                "apply ConfigMap cm to cluster c"
            ]
        );
        for (errors, reason) in [(vec![], own::APPLIED), (vec!["no".to_owned()], own::NOT_APPLIED)] {
            let mut look = look(set(Strategy::ApplyOnce), found("h"), binding(vec![]));
            let call = Apply {
                cluster: "c".to_owned(),
                kind: ResourceKind::ConfigMap,
                name: "cm".to_owned(),
                hash: "h".to_owned(),
                strategy: Strategy::ApplyOnce,
            };
            let ok = errors.is_empty();
            look.concluded = vec![Concluded { call, result: Some(json!({"errors": errors})) }];
            let (effects, condition) = summaries(&look);
            assert_eq!(effects, ["patch clusterresourcesetbindings.addons.cluster.x-k8s.io n/c"]);
            assert_eq!(condition.as_deref(), Some(reason));
            look.seen.targets[0].binding = binding(applied("h", ok));
            assert_eq!(summaries(&look).0, [""; 0], "written down, and not tried again at once");
        }
    }

    #[test]
    fn secrets_of_another_type_and_missing_resources_are_reported() {
        let bound = || binding(vec![]);
        assert_eq!(
            summaries(&look(set(Strategy::ApplyOnce), Resource::WrongType, bound())),
            (vec![], Some("WrongSecretType".to_owned()))
        );
        assert_eq!(
            summaries(&look(set(Strategy::ApplyOnce), Resource::Missing, bound())),
            (vec![], Some("InternalError".to_owned()))
        );
    }

    #[test]
    fn a_deleted_set_is_removed_from_bindings_and_empty_ones_are_deleted() {
        let mut going = set(Strategy::ApplyOnce);
        going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        let alone = look(going.clone(), found("h"), binding(applied("h", true)));
        assert_eq!(summaries(&alone).0, ["delete clusterresourcesetbindings.addons.cluster.x-k8s.io n/c"]);
        let mut shared = ClusterResourceSetBinding::clone(&binding(applied("h", true)).expect("a binding"));
        let other = ResourceSetBinding {
            cluster_resource_set_name: "other".to_owned(),
            ..ResourceSetBinding::default()
        };
        shared.spec.bindings.push(other);
        let shared = look(going.clone(), found("h"), Some(Arc::new(shared)));
        assert_eq!(summaries(&shared).0, ["patch clusterresourcesetbindings.addons.cluster.x-k8s.io n/c"]);
        let left = ClusterResourceSetController::default().decide(&look(going, found("h"), None));
        assert_eq!((left.effects.len(), left.object.metadata.finalizers.len()), (0, 0));
    }

    #[test]
    fn a_selector_without_requirements_selects_nothing() {
        let mut all = set(Strategy::ApplyOnce);
        let cluster = Cluster::default();
        assert_eq!(selects(&all, &cluster), Ok(false));
        let match_labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        all.spec.cluster_selector =
            LabelSelector { match_labels: match_labels.clone(), ..LabelSelector::default() };
        assert_eq!(selects(&all, &cluster), Ok(false));
        let metadata = ObjectMeta { labels: match_labels, ..ObjectMeta::default() };
        assert_eq!(selects(&all, &Cluster { metadata, ..Cluster::default() }), Ok(true));
    }
}
