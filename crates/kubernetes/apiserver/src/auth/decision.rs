//! Decisions of authorizers.

use super::{Attributes, User};

/// The decision of an authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow {
        /// Reason, shown by access reviews.
        reason: String,
    },
    /// Nothing allows the request. RBAC has no deny rules, so this is the only negative decision.
    NoOpinion {
        /// Errors during evaluation, shown by access reviews and `Forbidden` messages; often empty.
        reason: String,
    },
}

impl Decision {
    pub fn allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Allow { reason } | Self::NoOpinion { reason } => reason,
        }
    }
}

pub trait Authorizer: Send + Sync {
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// The rules that apply to a user in a namespace, for `SelfSubjectRulesReview`.
    fn rules_for(&self, user: &User, namespace: &str) -> RulesForUser;
}

/// The rules that apply to a user in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesForUser {
    pub resource_rules: Vec<ResourceRule>,
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether some rules could not be evaluated.
    pub incomplete: bool,
    /// Why not.
    pub evaluation_error: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources, `pods/log`, `*/scale` or `*`.
    pub resources: Vec<String>,
    /// Names the rule is limited to; empty means all.
    pub resource_names: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// HTTP methods in lower case, or `*`.
    pub verbs: Vec<String>,
    /// Paths; a trailing `*` matches everything below.
    pub non_resource_urls: Vec<String>,
}

/// Allows everything: for in-process servers that trust their caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &Attributes) -> Decision {
        Decision::Allow { reason: String::new() }
    }

    fn rules_for(&self, _: &User, _: &str) -> RulesForUser {
        let all = || vec!["*".to_owned()];
        RulesForUser {
            resource_rules: vec![ResourceRule {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                resource_names: vec![],
            }],
            non_resource_rules: vec![NonResourceRule { verbs: all(), non_resource_urls: all() }],
            ..RulesForUser::default()
        }
    }
}
