//! What an authorizer answers.

use super::{Attributes, User};

/// An authorizer's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request may go on.
    Allow {
        /// Why, as access reviews show it.
        reason: String,
    },
    /// Nothing allows the request. RBAC has no rules that deny, so absence of permission is the only refusal.
    NoOpinion {
        /// What went wrong while looking, as access reviews and `Forbidden` messages show it; often empty.
        reason: String,
    },
}

impl Decision {
    /// Whether the request may go on.
    pub fn allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow { reason } | Self::NoOpinion { reason } => reason,
        }
    }
}

/// Decides whether a request may go on.
pub trait Authorizer: Send + Sync {
    /// Decides about one request.
    fn authorize(&self, attributes: &Attributes) -> Decision;

    /// What the user may do in a namespace, for `SelfSubjectRulesReview`.
    fn rules_for(&self, user: &User, namespace: &str) -> RulesForUser;
}

/// What a user may do in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesForUser {
    /// Rules about resources.
    pub resource_rules: Vec<ResourceRule>,
    /// Rules about paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether something could not be read.
    pub incomplete: bool,
    /// What could not be read.
    pub evaluation_error: String,
}

/// One rule about resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources, `pods/log`, `*/scale` or `*`.
    pub resources: Vec<String>,
    /// Names the rule is limited to; none means all.
    pub resource_names: Vec<String>,
}

/// One rule about paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// HTTP methods in lower case, or `*`.
    pub verbs: Vec<String>,
    /// Paths, with `*` as last character for all below.
    pub non_resource_urls: Vec<String>,
}

/// Lets everybody do everything: for in-process servers that trust their caller.
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
