//! Asks an extension whether machines of old sets can be updated in place.

use std::sync::Arc;

use capstan_capi_types::core::{MachineDeployment, MachineSet};
use capstan_capi_types::runtime::Hook;
use capstan_controller::{ObserveError, View};
use capstan_object::Object;
use jiff::Timestamp;

use super::choose::{Choice, choose};
use super::desired::{self, Revision};
use super::observed::{InPlace, Observed};
use super::rollout::{SetPlan, Strategy};
use super::strategy::strategy;
use crate::contract::{Lookup, look_up};
use crate::in_place::{AskError, Failure, Part, Question, Updater};
use crate::paused;
use crate::template::differences;

/// Asks about each old set that has machines, as long as the current set has not all of its own.
pub(super) async fn ask(
    deployment: &MachineDeployment,
    seen: &Observed,
    updater: &dyn Updater,
    view: &View,
) -> Result<InPlace, ObserveError> {
    let (key, hook) = (deployment.key(), Hook::CanUpdateMachineSet);
    let Some((wanted, candidates)) = candidates(deployment, seen, view.now()) else {
        return Ok(InPlace::default());
    };
    let failed = |failure: Failure| {
        let why = format!("{hook}: {}", failure.why);
        InPlace { failed: Some(Failure { why, ..failure }), ..InPlace::default() }
    };
    match updater.answers(view, &key, hook).await {
        Ok(true) => {}
        Ok(false) => return Ok(InPlace::default()),
        Err(AskError::Failed(failure)) => return Ok(failed(failure)),
        Err(AskError::Observe(error)) => return Err(error),
    }
    let mut answer = InPlace::default();
    for set in candidates {
        let name = set.metadata.name.as_str();
        let Some(question) = question(&set, &wanted, seen, view).await? else {
            // Upstream stops the rollout if a template of an old set is gone. Its machines can be replaced, though.
            answer
                .refused
                .push(format!("MachineSet {name} cannot be updated in-place: templates are missing"));
            continue;
        };
        let subject = format!("{} {} {}", set.metadata.uid, name, wanted.metadata.name);
        match updater.can_update(view, &key, hook, &subject, &question).await {
            Ok(left) if left.is_empty() => drop(answer.sets.insert(name.to_owned())),
            Ok(left) => answer
                .refused
                .push(format!("MachineSet {name} cannot be updated in-place: {}", left.join(", "))),
            Err(AskError::Failed(failure)) => return Ok(failed(failure)),
            Err(AskError::Observe(error)) => return Err(error),
        }
    }
    Ok(answer)
}

/// The current set, which may not exist yet, and the old ones whose machines may move to it; `None` if there are none.
fn candidates(
    deployment: &MachineDeployment,
    seen: &Observed,
    now: Timestamp,
) -> Option<(Arc<MachineSet>, Vec<Arc<MachineSet>>)> {
    let strategy = strategy(deployment);
    let is_paused =
        paused::why(seen.cluster.as_deref(), &deployment.metadata, MachineDeployment::KIND.kind).is_some();
    let waits = deployment.metadata.is_deleting()
        || deployment.spec.paused == Some(true)
        || is_paused
        || strategy == Strategy::OnDelete
        || seen.cluster.is_none()
        || seen.sets.iter().any(|set| set.metadata.controller().is_none());
    let replicas = deployment.spec.replicas.filter(|_| !waits)?;
    let Choice { current, old } = choose(deployment, &seen.sets, now);
    let due = deployment.spec.rollout.after.filter(|after| now >= after.timestamp());
    let is_candidate = |set: &Arc<MachineSet>| {
        // A rollout that a user asked for by time wants new machines.
        let expired = due.is_some_and(|after| set.metadata.creation_timestamp < Some(after));
        set.status.replicas.unwrap_or(0) > 0
            && !expired
            && !differences(&set.spec.template, &deployment.spec.template).is_empty()
    };
    let candidates: Vec<_> = old.iter().filter(|set| is_candidate(set)).cloned().collect();
    if candidates.is_empty()
        || current.as_ref().is_some_and(|current| current.spec.replicas.unwrap_or(0) >= replicas)
    {
        return None;
    }
    let wanted = match current {
        Some(current) => current,
        None => {
            let suffix = desired::names(deployment, &seen.sets).upcoming().next()?;
            let revision = Revision::of_current(None, &old);
            Arc::new(desired::new_set(deployment, &strategy, &suffix, &revision, &SetPlan::default()))
        }
    };
    Some((wanted, candidates))
}

/// `None` if a template does not exist, or only one of both has a bootstrap template.
async fn question(
    set: &MachineSet,
    wanted: &MachineSet,
    seen: &Observed,
    view: &View,
) -> Result<Option<Question>, ObserveError> {
    let (namespace, template) = (set.metadata.namespace.as_str(), &set.spec.template.spec);
    let infrastructure = look_up(view, &template.infrastructure_ref, namespace).await?;
    let bootstrap = look_up(view, &template.bootstrap.config_ref, namespace).await?;
    let (Some(now), Some(then)) = (infrastructure.object(), seen.infrastructure_template.object()) else {
        return Ok(None);
    };
    let mut parts = vec![Part::machine_set(set, wanted), Part::infrastructure_template(now, then)];
    match (&bootstrap, &seen.bootstrap_template) {
        (Lookup::NotReferenced, Lookup::NotReferenced) => {}
        (Lookup::Object(now), Lookup::Object(then)) => parts.push(Part::bootstrap_template(now, then)),
        _ => return Ok(None),
    }
    Ok(Some(Question(parts)))
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::Cluster;
    use capstan_object::OwnerReference;

    use super::*;
    use crate::testing::at;

    fn deployment(version: &str) -> MachineDeployment {
        let mut deployment = MachineDeployment::default();
        deployment.metadata.name = "d".to_owned();
        deployment.metadata.uid = "d".to_owned();
        deployment.spec.replicas = Some(3);
        deployment.spec.template.spec.version = version.to_owned();
        deployment
    }

    fn set(name: &str, version: &str, wanted: i32, replicas: i32) -> Arc<MachineSet> {
        let mut set = MachineSet::default();
        set.metadata.name = name.to_owned();
        set.metadata.creation_timestamp = Some(at(10).into());
        set.metadata.owner_references = vec![OwnerReference::controlled_by(&deployment(""))];
        set.spec.replicas = Some(wanted);
        set.status.replicas = Some(replicas);
        set.spec.template.spec.version = version.to_owned();
        Arc::new(set)
    }

    #[test]
    fn old_sets_with_machines_are_asked_about_while_the_current_one_lacks_some() {
        type Change<'a> = &'a dyn Fn(&mut MachineDeployment);
        let old = || set("old", "v1", 3, 3);
        let same: Change<'_> = &|_| ();
        for (what, change, sets, expected) in [
            ("no old set", same, vec![set("a", "v2", 3, 3)], None),
            ("the current set does not exist yet", same, vec![old()], Some("old")),
            ("it lacks machines", same, vec![old(), set("a", "v2", 1, 1)], Some("old")),
            ("it has all", same, vec![old(), set("a", "v2", 3, 3)], None),
            ("the old set has none left", same, vec![set("old", "v1", 0, 0), set("a", "v2", 1, 1)], None),
            ("another set with the template", same, vec![set("b", "v2", 1, 1), set("a", "v2", 1, 1)], None),
            ("paused", &|d: &mut MachineDeployment| d.spec.paused = Some(true), vec![old()], None),
            (
                "a rollout by time",
                &|d: &mut MachineDeployment| d.spec.rollout.after = Some(at(20).into()),
                vec![old()],
                None,
            ),
            (
                "on delete",
                &|d: &mut MachineDeployment| {
                    d.spec.rollout.strategy.kind =
                        Some(capstan_capi_types::core::MachineDeploymentRolloutStrategyType::OnDelete);
                },
                vec![old()],
                None,
            ),
        ] {
            let mut deployment = deployment("v2");
            change(&mut deployment);
            let seen = Observed { cluster: Some(Arc::new(Cluster::default())), sets, ..Observed::default() };
            let found = candidates(&deployment, &seen, at(100));
            let names = found.map(|(wanted, sets)| {
                assert_eq!(wanted.spec.template.spec.version, "v2", "{what}");
                sets.iter().map(|set| set.metadata.name.clone()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(names.as_deref(), expected, "{what}");
        }
    }
}
