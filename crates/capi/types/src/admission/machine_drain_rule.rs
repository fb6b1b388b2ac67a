//! `MachineDrainRule`.

use capstan_object::LabelSelector;

use super::common::{selector, shown};
use super::{Admission, Features, FieldError};
use crate::core::{MachineDrainRule, MachineDrainRuleDrainBehavior};

impl Admission for MachineDrainRule {
    fn validate(&self, _old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let drain = &self.spec.drain;
        let drained = drain.behavior.is_none_or(|it| it == MachineDrainRuleDrainBehavior::Drain);
        if let (false, Some(order)) = (drained, drain.order) {
            errors.push(FieldError::invalid(
                "spec.drain.order",
                order,
                r#"order must not be set if drain behavior is "Skip" or "WaitCompleted""#,
            ));
        }
        let mut check = |labels: Option<&LabelSelector>, path: String| {
            if let Some(labels) = labels
                && let Err(problem) = selector(labels)
            {
                errors.push(FieldError::invalid(path, shown(labels), problem));
            }
        };
        for (at, machines) in self.spec.machines.iter().enumerate() {
            check(machines.selector.as_ref(), format!("spec.machines[{at}].selector"));
            check(machines.cluster_selector.as_ref(), format!("spec.machines[{at}].clusterSelector"));
        }
        for (at, pods) in self.spec.pods.iter().enumerate() {
            check(pods.selector.as_ref(), format!("spec.pods[{at}].selector"));
            check(pods.namespace_selector.as_ref(), format!("spec.pods[{at}].namespaceSelector"));
        }
        errors
    }
}
