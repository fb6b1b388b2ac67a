//! `Machine`.

use super::common::{
    default_cluster_label, default_version, validate_cluster_name, validate_taints, validate_version,
    validate_worker_taints,
};
use super::{Admission, Features, FieldError};
use crate::core::{Machine, label};

/// Default seconds for which the deletion of a Node is retried.
pub(super) const NODE_DELETION_TIMEOUT_SECONDS: i32 = 10;

impl Admission for Machine {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        default_cluster_label(&mut self.metadata, &self.spec.cluster_name);
        default_version(&mut self.spec.version);
        self.spec.deletion.node_deletion_timeout_seconds.get_or_insert(NODE_DELETION_TIMEOUT_SECONDS);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        // Boot data of a pool's machines belongs to the pool.
        let of_pool = self.metadata.labels.contains_key(label::POOL_NAME)
            || self.metadata.owner_references.iter().any(|owner| owner.kind == "MachinePool");
        if !of_pool {
            super::common::validate_bootstrap(&spec.bootstrap, "spec.bootstrap", &mut errors);
        }
        validate_cluster_name(&spec.cluster_name, old.map(|old| &*old.spec.cluster_name), &mut errors);
        validate_version(&spec.version, "spec.version", &mut errors);
        validate_taints(&spec.taints, "spec.taints", features, &mut errors);
        if !self.metadata.labels.contains_key(label::CONTROL_PLANE) {
            validate_worker_taints(&spec.taints, "spec.taints", features, &mut errors);
        }
        errors
    }
}
