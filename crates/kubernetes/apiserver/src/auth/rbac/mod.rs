//! Role-based access control with the Roles and bindings in the store.
//!
//! The policy is indexed by subject on first use, and again after one of its four buckets changed.

mod aggregation;
mod bootstrap;
mod coverage;
mod escalation;
mod policy;
mod reconcile;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use capstan_schema::bounded::Texts;
use parking_lot::Mutex;

pub use aggregation::aggregated_rules;
pub use bootstrap::bootstrap_policy;
use policy::Policy;
pub use reconcile::{Reconciliation, reconcile};
pub use rule::PolicyRule;
pub(super) use rule::quoted_list;

use super::{
    Attributes, Authorizer, Decision, MASTERS, NonResourceRule, ObjectSource, ResourceRule, RulesForUser,
    User,
};

/// Authorizes by the Roles and bindings in the store. Members of `system:masters` may do everything.
pub struct Rbac {
    source: Arc<dyn ObjectSource>,
    policy: ArcSwapOption<Policy>,
    reading: Mutex<()>,
}

impl Rbac {
    pub fn new(source: Arc<dyn ObjectSource>) -> Self {
        Self { source, policy: ArcSwapOption::empty(), reading: Mutex::new(()) }
    }

    fn policy(&self) -> Arc<Policy> {
        let current = || self.policy.load_full().filter(|policy| policy.is_current(&*self.source));
        if let Some(policy) = current() {
            return policy;
        }
        // One reader rebuilds; the others wait for its result.
        let _reading = self.reading.lock();
        current().unwrap_or_else(|| {
            let before = self.policy.load_full();
            let policy = Arc::new(Policy::read(&*self.source, before.as_deref()));
            self.policy.store(Some(policy.clone()));
            policy
        })
    }

    /// The rules of every role that applies to a user in a namespace, each role once however often it is bound, and
    /// evaluation errors.
    fn rules(&self, user: &User, namespace: &str) -> (Vec<Arc<[PolicyRule]>>, Vec<policy::RoleError>) {
        let policy = self.policy();
        let mut seen = HashSet::new();
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for binding in policy.applying(user, namespace) {
            match &binding.rules {
                Ok(own) if seen.insert(Arc::as_ptr(own)) => rules.push(own.clone()),
                Ok(_) => {}
                Err(error) => errors.push(error.clone()),
            }
        }
        (rules, errors)
    }
}

impl Authorizer for Rbac {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        if attributes.user.in_group(MASTERS) {
            return Decision::Allow { reason: String::new() };
        }
        let mut errors = Texts::default();
        for binding in self.policy().applying(&attributes.user, &attributes.namespace) {
            match &binding.rules {
                Ok(rules) => {
                    if rules.iter().any(|rule| rule.allows(attributes)) {
                        let reason = format!("RBAC: allowed by {}", binding.describe(&attributes.user));
                        return Decision::Allow { reason };
                    }
                }
                Err(error) => errors.push(error.in_denial()),
            }
        }
        let reason = match errors.is_empty() {
            true => String::new(),
            false => format!("RBAC: {}", aggregate(errors)),
        };
        Decision::NoOpinion { reason }
    }

    fn rules_for(&self, user: &User, namespace: &str) -> RulesForUser {
        let (rules, errors) = self.rules(user, namespace);
        let mut out = RulesForUser {
            evaluation_error: aggregate(errors.iter().map(policy::RoleError::in_denial).collect()),
            ..RulesForUser::default()
        };
        for rule in rules.iter().flat_map(|rules| rules.iter()) {
            let rule = rule.clone();
            if !rule.resources.is_empty() {
                out.resource_rules.push(ResourceRule {
                    verbs: rule.verbs.clone(),
                    api_groups: rule.api_groups,
                    resources: rule.resources,
                    resource_names: rule.resource_names,
                });
            }
            if !rule.non_resource_urls.is_empty() {
                out.non_resource_rules
                    .push(NonResourceRule { verbs: rule.verbs, non_resource_urls: rule.non_resource_urls });
            }
        }
        out
    }
}

/// Joins several errors as Go's aggregate does: without duplicates, in brackets if more than one.
pub(crate) fn aggregate(texts: Texts) -> String {
    let mut seen = HashSet::new();
    let mut texts = texts.into_lines();
    texts.retain(|text| seen.insert(text.clone()));
    match &texts[..] {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
