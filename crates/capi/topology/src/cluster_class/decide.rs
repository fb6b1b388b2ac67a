//! Decides about a ClusterClass.

use capstan_capi_core::conditions::{self, ConditionState};
use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::cluster_class::{condition, reason};
use capstan_capi_types::core::condition as shared;
use capstan_capi_types::variables;
use capstan_controller::{Decision, Effect, Look, Wait};
use capstan_object::{ConditionStatus, OwnerReference};
use serde_json::json;

use super::ClusterClasses;

pub(super) fn decide(look: &Look<ClusterClasses>) -> Decision<ClusterClasses> {
    let mut decision = Decision::rest(look);
    let class = &look.object;
    if class.metadata.is_deleting() {
        return decision;
    }
    let status = &mut decision.object.status;
    conditions::set_state(
        look,
        &mut status.conditions,
        shared::PAUSED,
        paused::condition(look.paused.as_deref()),
        None,
    );
    if look.paused.is_some() {
        return decision;
    }
    status.variables = variables::definitions(&class.spec.variables);
    status.observed_generation = class.metadata.generation;
    let ready = ConditionState::new(ConditionStatus::True, reason::VARIABLES_READY, "");
    conditions::set_state(look, &mut status.conditions, condition::VARIABLES_READY, ready, None);
    let versions = match look.seen.outdated.is_empty() {
        true => ConditionState::new(ConditionStatus::True, reason::REF_VERSIONS_UP_TO_DATE, ""),
        false => {
            let lines =
                look.seen.outdated.iter().map(|(found, newest)| format!("* {found} should be {newest}"));
            let message = format!(
                "The following templateRefs are not using the latest apiVersion:\n{}",
                lines.collect::<Vec<_>>().join("\n")
            );
            ConditionState::new(ConditionStatus::False, reason::REF_VERSIONS_NOT_UP_TO_DATE, message)
        }
    };
    conditions::set_state(look, &mut status.conditions, condition::REF_VERSIONS_UP_TO_DATE, versions, None);
    for why in &look.seen.missing {
        decision.wait(Wait::on("TemplateMissing", why.clone()));
    }
    let owner = OwnerReference::to(&**class);
    for template in &look.seen.templates {
        let mut wanted = template.metadata.owner_references.clone();
        if owners::ensure(&mut wanted, owner.clone()) {
            let change = json!({"metadata": {"ownerReferences": wanted}});
            decision.best_effort(Effect::merge_guarded(template.reference(), &template.metadata, change));
        }
    }
    decision
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::super::Observed;
    use super::*;
    use crate::testing::{class, template};

    #[test]
    fn variables_are_reported_and_templates_owned() {
        let of = class(json!({
            "metadata": {"uid": "u9", "generation": 4},
            "spec": {"variables": [
                {"name": "b", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
                {"name": "a", "schema": {"openAPIV3Schema": {"type": "string"}}},
            ]},
        }));
        let seen = Observed {
            templates: vec![template("infra", "MachineTemplate", "m", json!({}))],
            missing: Vec::new(),
            outdated: vec![("infra/v1 MachineTemplate".to_owned(), "infra/v2".to_owned())],
        };
        let look = Look::new(Arc::new(of), seen, Timestamp::UNIX_EPOCH);
        let decision = decide(&look);
        let status = &decision.object.status;
        assert_eq!(status.observed_generation, 4);
        let names: Vec<(&str, Option<bool>)> =
            status.variables.iter().map(|it| (&*it.name, it.definitions[0].required)).collect();
        assert_eq!(names, [("a", Some(false)), ("b", Some(true))]);
        let states: Vec<(&str, &str)> = status.conditions.iter().map(|it| (&*it.kind, &*it.reason)).collect();
        assert!(states.contains(&("RefVersionsUpToDate", "RefVersionsNotUpToDate")), "{states:?}");
        assert!(states.contains(&("VariablesReady", "VariablesReady")), "{states:?}");
        let Effect::Patch { patch, .. } = &decision.effects[0].effect else { panic!("an owner reference") };
        assert_eq!(patch.body()["metadata"]["ownerReferences"][0]["uid"], "u9");
    }
}
