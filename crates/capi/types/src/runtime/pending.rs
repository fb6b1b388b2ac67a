//! Hooks that are due once an operation is over, in an annotation: it survives restarts and moves.

use std::collections::{BTreeMap, BTreeSet};

use super::Hook;

/// Annotation: names of hooks to call after an operation, separated by commas.
pub const PENDING_HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";
/// Annotation of a Cluster: the hooks before its deletion have passed.
pub const OK_TO_DELETE: &str = "runtime.cluster.x-k8s.io/ok-to-delete";
/// Prefix of annotations of a Cluster: while there is one, no upgrade starts.
pub const BEFORE_UPGRADE_PREFIX: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io";

/// The hooks that are due. Names that are not known here stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingHooks(BTreeSet<String>);

impl PendingHooks {
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let names = annotations.get(PENDING_HOOKS).map_or("", String::as_str).split(',');
        Self(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    pub fn contains(&self, hook: Hook) -> bool {
        self.0.contains(hook.name())
    }

    pub fn add(&mut self, hook: Hook) {
        self.0.insert(hook.name().to_owned());
    }

    pub fn remove(&mut self, hook: Hook) {
        self.0.remove(hook.name());
    }

    pub fn write(&self, annotations: &mut BTreeMap<String, String>) {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        match names.is_empty() {
            true => annotations.remove(PENDING_HOOKS),
            false => annotations.insert(PENDING_HOOKS.to_owned(), names.join(",")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_added_and_removed_and_others_stay() {
        let mut annotations =
            BTreeMap::from([(PENDING_HOOKS.to_owned(), "Other,,BeforeClusterCreate".to_owned())]);
        let mut pending = PendingHooks::of(&annotations);
        assert!(pending.contains(Hook::BeforeClusterCreate));
        pending.remove(Hook::BeforeClusterCreate);
        pending.add(Hook::AfterClusterUpgrade);
        pending.write(&mut annotations);
        assert_eq!(annotations[PENDING_HOOKS], "AfterClusterUpgrade,Other");
        PendingHooks::default().write(&mut annotations);
        assert!(annotations.is_empty());
    }
}
