//! `MachineSet`.

use capstan_schema::golang;

use super::common::{
    default_cluster_label, default_replicas, default_version, selector, selects, shown, validate_bootstrap,
    validate_cluster_name, validate_machine_template, validate_naming, validate_skipped_preflight_checks,
};
use super::{Admission, Features, FieldError};
use crate::core::{MachineSet, label};

impl Admission for MachineSet {
    fn default(&mut self, old: Option<&Self>) -> Result<(), FieldError> {
        default_cluster_label(&mut self.metadata, &self.spec.cluster_name);
        let old = old.map(|old| old.spec.replicas);
        default_replicas(&mut self.spec.replicas, &self.metadata.annotations, old)?;
        if self.spec.selector.is_empty() {
            let name = label::value(&self.metadata.name);
            self.spec.selector.match_labels.insert(label::SET_NAME.to_owned(), name.clone());
            self.spec.template.metadata.labels.insert(label::SET_NAME.to_owned(), name);
        }
        default_version(&mut self.spec.template.spec.version);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        validate_bootstrap(&spec.template.spec.bootstrap, "spec.template.spec.bootstrap", &mut errors);
        match selector(&spec.selector) {
            Err(problem) => errors.push(FieldError::invalid("spec.selector", shown(&spec.selector), problem)),
            Ok(selector) if !selects(&selector, &spec.template.metadata.labels) => {
                errors.push(FieldError::invalid(
                    "spec.template.metadata.labels",
                    shown(&spec.template.metadata.labels),
                    format!("must match spec.selector {}", golang::quote(&selector.to_string())),
                ));
            }
            Ok(_) => {}
        }
        validate_skipped_preflight_checks(&self.metadata.annotations, &mut errors);
        validate_cluster_name(&spec.cluster_name, old.map(|old| &*old.spec.cluster_name), &mut errors);
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
