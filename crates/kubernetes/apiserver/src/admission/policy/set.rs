//! The stored policies with their bindings, compiled once per change.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::compiled::{Binding, Policy, PolicyRules, version};
use crate::auth::ObjectSource;

/// A policy and the bindings that apply it.
pub(super) struct PolicyHook<R> {
    pub(super) policy: Arc<Policy<R>>,
    pub(super) bindings: Vec<Binding>,
}

/// The policies of one state of the store. Policies without a binding are left out.
pub(super) struct Current<R> {
    /// Revisions of policies and bindings.
    revisions: (u64, u64),
    /// By name.
    pub(super) hooks: Vec<PolicyHook<R>>,
}

/// The policies of one kind.
pub(super) struct PolicySet<R> {
    policies: &'static str,
    bindings: &'static str,
    current: ArcSwapOption<Current<R>>,
    reading: Mutex<()>,
}

impl<R: PolicyRules> PolicySet<R> {
    pub(super) fn new(policies: &'static str, bindings: &'static str) -> Self {
        Self { policies, bindings, current: ArcSwapOption::empty(), reading: Mutex::new(()) }
    }

    /// The currently stored policies.
    pub(super) fn current(&self, source: &dyn ObjectSource) -> Arc<Current<R>> {
        // Read before the objects: a write in between makes the list look outdated, never current.
        let fresh = || {
            let revisions = (source.bucket_revision(self.policies), source.bucket_revision(self.bindings));
            let current = self.current.load_full().filter(|current| current.revisions == revisions);
            current.ok_or(revisions)
        };
        if let Ok(current) = fresh() {
            return current;
        }
        let _reading = self.reading.lock();
        let revisions = match fresh() {
            Ok(current) => return current,
            Err(revisions) => revisions,
        };
        let current = Arc::new(Current { revisions, hooks: self.read(source) });
        self.current.store(Some(current.clone()));
        current
    }

    fn read(&self, source: &dyn ObjectSource) -> Vec<PolicyHook<R>> {
        let mut bindings: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
        for binding in source.list(self.bindings) {
            let binding = Binding::from_json(&binding);
            bindings.entry(binding.policy.clone()).or_default().push(binding);
        }
        // Policies that did not change stay compiled.
        let before = self.current.load_full();
        let known = |name: &str| {
            let hooks = before.as_ref()?.hooks.iter();
            hooks.map(|hook| &hook.policy).find(|policy| policy.name == name)
        };
        let hooks = bindings.into_iter().filter_map(|(name, bindings)| {
            let object = source.get(self.policies, &name)?;
            let unchanged = known(&name).filter(|policy| policy.version == version(&object));
            let policy = unchanged.cloned().unwrap_or_else(|| Arc::new(Policy::compile(&object)));
            Some(PolicyHook { policy, bindings })
        });
        hooks.collect()
    }
}
