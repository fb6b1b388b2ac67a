//! Which mutating webhooks and policies run a second time.
//!
//! Mutating plugins run in two passes. In the second only those run again that asked for it (`IfNeeded`) and whose
//! result something changed after them.

use std::collections::HashSet;

use serde_json::Value;

/// What one plugin remembers of the first pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reinvocation {
    /// Whether the object was changed.
    changed: bool,
    /// Run since the last change, with reinvocation enabled.
    run: HashSet<String>,
    /// Run before a change.
    again: HashSet<String>,
    /// The object as the plugin left it. Known only if something may run again.
    output: Option<Value>,
}

/// What all plugins remember of the first pass.
#[derive(Debug, Clone, Default)]
pub struct Reinvocations {
    pub(crate) policies: Reinvocation,
    pub(crate) webhooks: Reinvocation,
    pub(crate) second_pass: bool,
}

impl Reinvocation {
    /// Something that may run again was run.
    pub(super) fn record_run(&mut self, id: &str) {
        self.run.insert(id.to_owned());
    }

    /// The object was changed: everything run before must run again.
    pub(super) fn record_change(&mut self) {
        self.changed = true;
        self.again.extend(self.run.drain());
    }

    /// The plugin is done with its first pass.
    pub(super) fn leave(&mut self, object: Option<&Value>) {
        if !self.run.is_empty() {
            self.output = object.cloned();
        }
    }

    /// What runs again, given the object at the start of the second pass.
    pub(super) fn enter(&mut self, object: Option<&Value>) -> HashSet<String> {
        if self.output.is_some() && self.output.as_ref() != object {
            self.again.extend(self.run.drain());
        }
        std::mem::take(&mut self.again)
    }
}

impl Reinvocations {
    /// Whether a second pass is needed.
    pub(super) fn needed(&self) -> bool {
        self.policies.changed || self.webhooks.changed
    }
}
