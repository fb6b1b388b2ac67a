//! Decides about a ClusterClass.

use capstan_capi_core::conditions::{self, ConditionState};
use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::cluster_class::{ClusterClassStatus, condition, reason};
use capstan_capi_types::core::{ClusterClass, condition as shared};
use capstan_capi_types::variables;
use capstan_controller::{Decision, Effect, Look, Wait};
use capstan_object::{ConditionStatus, OwnerReference};
use serde_json::json;

use super::{ClusterClasses, Discovered};

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
    let ready = report_variables(class, &look.seen.variables, status);
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
    if let Some(again) = look.seen.variables.again {
        decision.again_in(again);
    }
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

/// Variables with all their definitions. What cannot be discovered leaves those that were, and the generation that they
/// are of.
fn report_variables(
    class: &ClusterClass,
    discovered: &Discovered,
    status: &mut ClusterClassStatus,
) -> ConditionState {
    let failed = |why: String| {
        let message = format!("VariableDiscovery failed: {why}");
        ConditionState::new(ConditionStatus::False, reason::VARIABLE_DISCOVERY_FAILED, message)
    };
    if !discovered.errors.is_empty() {
        return failed(discovered.errors.join(", "));
    }
    status.variables = variables::definitions_with(&class.spec.variables, &discovered.found);
    let conflicting = status.variables.iter().filter(|it| it.definitions_conflict == Some(true));
    let conflicting: Vec<&str> = conflicting.map(|variable| variable.name.as_str()).collect();
    if !conflicting.is_empty() {
        let names = conflicting.join(",");
        return failed(format!("the following variables have conflicting schemas: {names}"));
    }
    status.observed_generation = class.metadata.generation;
    ConditionState::new(ConditionStatus::True, reason::VARIABLES_READY, "")
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
            variables: Discovered::default(),
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

    fn discovered(found: serde_json::Value, errors: &[&str]) -> Decision<ClusterClasses> {
        let of = class(json!({
            "metadata": {"generation": 4},
            "status": {"observedGeneration": 3},
            "spec": {"variables": [
                {"name": "a", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
            ]},
        }));
        let variables = Discovered {
            found: vec![("ext".to_owned(), serde_json::from_value(found).expect("variables"))],
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
            again: None,
        };
        let seen = Observed { variables, ..Observed::default() };
        decide(&Look::new(Arc::new(of), seen, Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn variables_of_extensions_join_those_of_the_class() {
        let same = json!({"name": "a", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}});
        let new = json!({"name": "b", "schema": {"openAPIV3Schema": {"type": "integer"}}});
        let decision = discovered(json!([same, new]), &[]);
        let status = &decision.object.status;
        let from = |at: usize| -> Vec<&str> {
            status.variables[at].definitions.iter().map(|definition| definition.from.as_str()).collect()
        };
        assert_eq!((from(0), from(1)), (vec!["inline", "ext"], vec!["ext"]));
        assert_eq!(status.variables[0].definitions_conflict, Some(false));
        assert_eq!(status.observed_generation, 4);
    }

    #[test]
    fn a_conflict_or_a_failed_discovery_leaves_the_generation_behind() {
        let other =
            json!([{"name": "a", "required": true, "schema": {"openAPIV3Schema": {"type": "integer"}}}]);
        for (decision, message) in [
            (
                discovered(other, &[]),
                "VariableDiscovery failed: the following variables have conflicting schemas: a",
            ),
            (discovered(json!([]), &["refused"]), "VariableDiscovery failed: refused"),
        ] {
            let status = &decision.object.status;
            let condition = status.conditions.iter().find(|it| it.kind == "VariablesReady").expect("set");
            assert_eq!((&*condition.reason, &*condition.message), ("VariableDiscoveryFailed", message));
            assert_eq!(status.observed_generation, 1, "of the fixture");
        }
    }
}
