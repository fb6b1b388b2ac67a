//! `MachineDeployment`.

use capstan_object::IntOrString;
use capstan_schema::golang;
use capstan_schema::meta;

use super::common::{
    default_cluster_label, default_replicas, default_version, selector, selects, shown, validate_bootstrap,
    validate_cluster_name, validate_machine_template, validate_naming, validate_percentage,
    validate_rolling_update, validate_skipped_preflight_checks,
};
use super::{Admission, Features, FieldError};
use crate::core::{MachineDeployment, MachineDeploymentRolloutStrategyType, label};

impl Admission for MachineDeployment {
    fn default(&mut self, old: Option<&Self>) -> Result<(), FieldError> {
        let cluster = self.spec.cluster_name.clone();
        default_cluster_label(&mut self.metadata, &cluster);
        let old = old.map(|old| old.spec.replicas);
        default_replicas(&mut self.spec.replicas, &self.metadata.annotations, old)?;
        let strategy = &mut self.spec.rollout.strategy;
        let kind = *strategy.kind.get_or_insert(MachineDeploymentRolloutStrategyType::RollingUpdate);
        if kind == MachineDeploymentRolloutStrategyType::RollingUpdate {
            strategy.rolling_update.max_surge.get_or_insert(IntOrString::Int(1));
            strategy.rolling_update.max_unavailable.get_or_insert(IntOrString::Int(0));
        }
        let labels = &mut self.spec.template.metadata.labels;
        if self.spec.selector.is_empty() {
            let name = self.metadata.name.clone();
            self.spec.selector.match_labels.insert(label::DEPLOYMENT_NAME.to_owned(), name.clone());
            labels.insert(label::DEPLOYMENT_NAME.to_owned(), name);
        }
        self.spec.selector.match_labels.insert(label::CLUSTER_NAME.to_owned(), cluster.clone());
        labels.insert(label::CLUSTER_NAME.to_owned(), cluster);
        default_version(&mut self.spec.template.spec.version);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        // The name becomes a label value.
        for problem in meta::label_value(&self.metadata.name) {
            errors.push(FieldError::invalid(
                "metadata.name",
                self.metadata.name.as_str(),
                format!("must be a valid label value: {problem}"),
            ));
        }
        validate_bootstrap(&spec.template.spec.bootstrap, "spec.template.spec.bootstrap", &mut errors);
        match selector(&spec.selector) {
            Err(problem) => errors.push(FieldError::invalid("spec.selector", shown(&spec.selector), problem)),
            Ok(selector) if !selects(&selector, &spec.template.metadata.labels) => {
                errors.push(FieldError::forbidden(
                    "spec.template.metadata.labels",
                    format!("must match spec.selector {}", golang::quote(&selector.to_string())),
                ));
            }
            Ok(_) => {}
        }
        validate_skipped_preflight_checks(&self.metadata.annotations, &mut errors);
        validate_cluster_name(&spec.cluster_name, old.map(|old| &*old.spec.cluster_name), &mut errors);
        let rolling_update = &spec.rollout.strategy.rolling_update;
        validate_rolling_update(
            rolling_update.max_unavailable.as_ref(),
            rolling_update.max_surge.as_ref(),
            "spec.rollout.strategy",
            &mut errors,
        );
        let in_flight = spec.remediation.max_in_flight.as_ref();
        validate_percentage(in_flight, "spec.remediation.maxInFlight", &mut errors);
        let template = &spec.template;
        validate_machine_template(
            &spec.cluster_name,
            &template.spec,
            &template.metadata,
            features,
            &mut errors,
        );
        validate_naming(&spec.machine_naming, "machineSet", "spec.machineNaming", &mut errors);
        errors
    }
}
