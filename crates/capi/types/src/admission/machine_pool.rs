//! `MachinePool`.

use super::common::{
    default_cluster_label, default_replicas, default_version, validate_bootstrap, validate_cluster_name,
    validate_template,
};
use super::machine::NODE_DELETION_TIMEOUT_SECONDS;
use super::{Admission, Features, FieldError};
use crate::core::MachinePool;

impl Admission for MachinePool {
    fn default(&mut self, old: Option<&Self>) -> Result<(), FieldError> {
        default_cluster_label(&mut self.metadata, &self.spec.cluster_name);
        let old = old.map(|old| old.spec.replicas);
        default_replicas(&mut self.spec.replicas, &self.metadata.annotations, old)?;
        let machine = &mut self.spec.template.spec;
        machine.deletion.node_deletion_timeout_seconds.get_or_insert(NODE_DELETION_TIMEOUT_SECONDS);
        default_version(&mut machine.version);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        validate_bootstrap(&spec.template.spec.bootstrap, "spec.template.spec.bootstrap", &mut errors);
        validate_cluster_name(&spec.cluster_name, old.map(|old| &*old.spec.cluster_name), &mut errors);
        validate_template(&spec.cluster_name, &spec.template.spec, &spec.template.metadata, &mut errors);
        if !spec.template.spec.taints.is_empty() {
            let message = "taints feature for MachinePools is not yet implemented";
            errors.push(FieldError::forbidden("spec.taints", message));
        }
        errors
    }
}
