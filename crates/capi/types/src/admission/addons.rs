//! `ClusterResourceSet` and `ClusterResourceSetBinding`.

use super::common::{IMMUTABLE, selector, shown};
use super::{Admission, Features, FieldError};
use crate::addons::{ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetStrategy};

impl Admission for ClusterResourceSet {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        self.spec.strategy.get_or_insert(ClusterResourceSetStrategy::ApplyOnce);
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        let mut reject = |problem: String| {
            errors.push(FieldError::invalid("spec.clusterSelector", shown(&spec.cluster_selector), problem));
        };
        match selector(&spec.cluster_selector) {
            Err(problem) => reject(problem),
            // An empty selector would match every cluster of a namespace, which is likely a mistake.
            Ok(selector) if selector.is_empty() => reject("selector must not be empty".to_owned()),
            Ok(_) => {}
        }
        if let Some(old) = old {
            if old.spec.strategy.is_some() && old.spec.strategy != spec.strategy {
                errors.push(FieldError::invalid("spec.strategy", shown(&spec.strategy), IMMUTABLE));
            }
            if old.spec.cluster_selector != spec.cluster_selector {
                errors.push(FieldError::invalid(
                    "spec.clusterSelector",
                    shown(&spec.cluster_selector),
                    IMMUTABLE,
                ));
            }
        }
        errors
    }
}

impl Admission for ClusterResourceSetBinding {
    fn validate(&self, old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        let name = self.spec.cluster_name.as_str();
        match old.map(|old| old.spec.cluster_name.as_str()) {
            Some(old) if !old.is_empty() && old != name => {
                vec![FieldError::invalid("spec.clusterName", name, IMMUTABLE)]
            }
            _ => Vec::new(),
        }
    }
}
