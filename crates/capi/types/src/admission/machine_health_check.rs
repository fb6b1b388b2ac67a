//! `MachineHealthCheck`.

use super::common::{
    default_cluster_label, selector, shown, validate_cluster_name, validate_node_startup_timeout,
    validate_percentage,
};
use super::{Admission, Features, FieldError};
use crate::core::machine_health_check::DEFAULT_NODE_STARTUP_TIMEOUT_SECONDS;
use crate::core::{MachineHealthCheck, label};

impl Admission for MachineHealthCheck {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        default_cluster_label(&mut self.metadata, &self.spec.cluster_name);
        self.spec.checks.node_startup_timeout_seconds.get_or_insert(DEFAULT_NODE_STARTUP_TIMEOUT_SECONDS);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        match selector(&spec.selector) {
            Err(problem) => errors.push(FieldError::invalid("spec.selector", shown(&spec.selector), problem)),
            Ok(selector) if selector.is_empty() => {
                errors.push(FieldError::required("spec.selector", "selector must not be empty"));
            }
            Ok(_) => {}
        }
        if spec.selector.match_labels.get(label::CLUSTER_NAME).is_some_and(|name| *name != spec.cluster_name)
        {
            errors.push(FieldError::invalid(
                "spec.selector",
                shown(&spec.selector),
                "cannot specify a cluster selector other than the one specified by ClusterName",
            ));
        }
        validate_cluster_name(&spec.cluster_name, old.map(|old| &*old.spec.cluster_name), &mut errors);
        validate_node_startup_timeout(&spec.checks, "spec", &mut errors);
        validate_percentage(
            spec.remediation.trigger_if.unhealthy_less_than_or_equal_to.as_ref(),
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo",
            &mut errors,
        );
        errors
    }
}
