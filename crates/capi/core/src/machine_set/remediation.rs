//! Replaces machines that failed their health checks.

use std::cmp::Reverse;
use std::sync::Arc;

use capstan_capi_types::core::machine_set::reason;
use capstan_capi_types::core::{Machine, MachineDeployment, MachineSet, annotation};
use capstan_object::{ConditionStatus, Conditions, IntOrString};

use crate::conditions::ConditionState;
use crate::machines::{self, condition_is, is_to_be_remediated};
use capstan_capi_types::core::machine::condition;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remediation {
    /// Recovered: their `OwnerRemediated` condition is removed.
    pub recovered: Vec<Arc<Machine>>,
    /// Deferred, with the condition to set.
    pub deferred: Vec<(Arc<Machine>, ConditionState)>,
    pub replaced: Vec<Arc<Machine>>,
}

impl Remediation {
    /// Some would be replaced if preflight checks passed.
    pub fn wants_to_replace(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Defers all replacements because preflight checks failed.
    pub fn held_back(mut self, failures: &[String]) -> Self {
        let message: Vec<_> = failures.iter().map(|failure| format!("* {failure}")).collect();
        let state =
            ConditionState::new(ConditionStatus::False, reason::REMEDIATION_DEFERRED, message.join("\n"));
        self.deferred.extend(self.replaced.drain(..).map(|machine| (machine, state.clone())));
        self
    }
}

/// The condition of a machine that is being replaced.
pub fn replacing() -> ConditionState {
    ConditionState::new(ConditionStatus::False, reason::MACHINE_DELETING, "Machine is deleting")
}

/// Decides about the machines of a set.
pub fn remediation(
    set: &MachineSet,
    deployment: Option<&MachineDeployment>,
    machines: &[Arc<Machine>],
) -> Remediation {
    let alive = || machines.iter().filter(|machine| !machine.metadata.is_deleting());
    let mut result = Remediation {
        recovered: alive()
            .filter(|machine| {
                condition_is(machine, condition::HEALTH_CHECK_SUCCEEDED, ConditionStatus::True)
                    && condition_is(machine, machines::OWNER_REMEDIATED, ConditionStatus::False)
            })
            .cloned()
            .collect(),
        ..Remediation::default()
    };
    let mut unhealthy: Vec<Arc<Machine>> =
        alive().filter(|machine| is_to_be_remediated(machine)).cloned().collect();
    let revision = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.get(annotation::REVISION).cloned()
    };
    if let Some(deployment) = deployment
        && revision(&deployment.metadata.annotations) != revision(&set.metadata.annotations)
    {
        // The rollout deletes them anyway, and their replacements belong to the current set.
        let message = "Machine won't be remediated because it is pending removal due to rollout";
        let state = ConditionState::new(ConditionStatus::False, reason::CANNOT_BE_REMEDIATED, message);
        result.deferred = unhealthy.into_iter().map(|machine| (machine, state.clone())).collect();
        return result;
    }
    // First those marked by users, then the newest: they are the least likely to run workloads.
    unhealthy.sort_by_key(|machine| {
        let asked = machine.metadata.annotations.contains_key(annotation::REMEDIATE_MACHINE);
        (!asked, Reverse(machine.metadata.creation_timestamp), machine.metadata.name.clone())
    });
    let limit = deployment.and_then(|deployment| deployment.spec.remediation.max_in_flight.as_ref());
    let Some(limit) = limit else {
        result.replaced = unhealthy;
        return result;
    };
    let desired = deployment.and_then(|deployment| deployment.spec.replicas).unwrap_or(1);
    let in_flight = machines.iter().filter(|machine| {
        let remediated = machine.status.conditions.condition(machines::OWNER_REMEDIATED);
        machine.metadata.is_deleting()
            && remediated.is_some_and(|remediated| {
                remediated.status == ConditionStatus::False && remediated.reason == reason::MACHINE_DELETING
            })
    });
    let most = usize::try_from(limit.scaled(desired, true).unwrap_or(0)).unwrap_or(0);
    let room = most.saturating_sub(in_flight.count()).min(unhealthy.len());
    let written = match limit {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    let message = format!(
        "Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is {written})"
    );
    let state = ConditionState::new(ConditionStatus::False, reason::REMEDIATION_DEFERRED, message);
    result.deferred = unhealthy.split_off(room).into_iter().map(|machine| (machine, state.clone())).collect();
    result.replaced = unhealthy;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition as reported, machine};

    fn state(name: &str, check: &str, owner: &str, created: i64) -> Machine {
        let mut machine = machine(name);
        machine.metadata.creation_timestamp = Some(at(created).into());
        machine.status.conditions.push(reported(condition::HEALTH_CHECK_SUCCEEDED, check, "R", ""));
        if !owner.is_empty() {
            machine.status.conditions.push(reported(machines::OWNER_REMEDIATED, owner, "R", ""));
        }
        machine
    }

    fn going(name: &str) -> Machine {
        let mut machine = state(name, "False", "", 0);
        machine.metadata.deletion_timestamp = Some(at(1).into());
        machine.status.conditions.push(reported(
            machines::OWNER_REMEDIATED,
            "False",
            reason::MACHINE_DELETING,
            "",
        ));
        machine
    }

    fn asked(mut machine: Machine) -> Machine {
        machine.metadata.annotations.insert(annotation::REMEDIATE_MACHINE.to_owned(), String::new());
        machine
    }

    fn decided(
        machines: Vec<Machine>,
        revisions: Option<(&str, &str)>,
        limit: Option<IntOrString>,
    ) -> (String, String, String) {
        let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
        let annotated = |revision: &str| [(annotation::REVISION.to_owned(), revision.to_owned())].into();
        let mut set = MachineSet::default();
        let deployment = revisions.map(|(of_set, of_deployment)| {
            set.metadata.annotations = annotated(of_set);
            let mut deployment = MachineDeployment::default();
            deployment.metadata.annotations = annotated(of_deployment);
            deployment.spec.replicas = Some(4);
            deployment.spec.remediation.max_in_flight = limit;
            deployment
        });
        let decided = remediation(&set, deployment.as_ref(), &machines);
        let names = |machines: &[Arc<Machine>]| {
            machines.iter().map(|m| m.metadata.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let deferred: Vec<_> =
            decided.deferred.iter().map(|(m, v)| format!("{}:{}", m.metadata.name, v.reason)).collect();
        (names(&decided.recovered), deferred.join(" "), names(&decided.replaced))
    }

    #[test]
    fn unhealthy_machines_are_replaced_within_the_limit() {
        let unhealthy = |name, created| state(name, "False", "False", created);
        for (what, machines, revisions, limit, expected) in [
            ("a healthy one is left", vec![state("a", "True", "", 0)], None, None, ("", "", "")),
            (
                "one that recovered is cleared",
                vec![state("a", "True", "False", 0)],
                None,
                None,
                ("a", "", ""),
            ),
            (
                "one without a remediation request stays",
                vec![state("a", "False", "", 0)],
                None,
                None,
                ("", "", ""),
            ),
            (
                "all at once without a limit, the newest first",
                vec![unhealthy("a", 1), unhealthy("b", 2)],
                None,
                None,
                ("", "", "b a"),
            ),
            (
                "what was asked for goes first",
                vec![asked(unhealthy("a", 1)), unhealthy("b", 2)],
                None,
                None,
                ("", "", "a b"),
            ),
            (
                "an old set replaces nothing",
                vec![unhealthy("a", 1)],
                Some(("1", "2")),
                None,
                ("", "a:CannotBeRemediated", ""),
            ),
            ("the current one does", vec![unhealthy("a", 1)], Some(("2", "2")), None, ("", "", "a")),
            (
                "one in flight is one less",
                vec![going("z"), unhealthy("a", 1), unhealthy("b", 2)],
                Some(("2", "2")),
                Some(IntOrString::Int(2)),
                ("", "a:RemediationDeferred", "b"),
            ),
            (
                "a share is taken of the deployment and rounded up",
                vec![unhealthy("a", 1), unhealthy("b", 2)],
                Some(("2", "2")),
                Some(IntOrString::String("10%".to_owned())),
                ("", "a:RemediationDeferred", "b"),
            ),
            (
                "nothing more when the limit is reached",
                vec![going("z"), unhealthy("a", 1)],
                Some(("2", "2")),
                Some(IntOrString::Int(1)),
                ("", "a:RemediationDeferred", ""),
            ),
        ] {
            let (recovered, deferred, replaced) = decided(machines, revisions, limit);
            assert_eq!((recovered.as_str(), deferred.as_str(), replaced.as_str()), expected, "{what}");
        }
    }

    #[test]
    fn failed_preflight_checks_defer_remediation() {
        let machine = Arc::new(state("a", "False", "False", 1));
        let decided = remediation(&MachineSet::default(), None, &[machine]);
        assert!(decided.wants_to_replace());
        let held = decided.held_back(&["x".to_owned(), "y".to_owned()]);
        assert!(!held.wants_to_replace());
        assert_eq!(held.deferred[0].1.message, "* x\n* y");
    }
}
