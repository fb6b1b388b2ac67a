//! The `authorizer` variable: questions of expressions, answered by the server's authorizer.

use std::fmt;
use std::sync::Arc;

use capstan_cel::{AccessAuthorizer, AccessDecision, AccessQuestion, AccessSubject, Value};

use crate::admission::AdmissionAttributes;
use crate::auth::{Attributes, Authorizer, User, service_account};

/// Answers questions about the user of one request.
#[derive(Clone)]
pub(in crate::admission) struct RequestAuthorizer {
    authorizer: Arc<dyn AccessAuthorizer>,
    /// The resource of the request, for `authorizer.requestResource`.
    resource: AccessQuestion,
}

impl RequestAuthorizer {
    pub(in crate::admission) fn of(
        attributes: &AdmissionAttributes,
        authorizer: &Arc<dyn Authorizer>,
    ) -> Self {
        let user = attributes.user.clone();
        Self {
            authorizer: Arc::new(UserQuestions { user, authorizer: authorizer.clone() }),
            resource: AccessQuestion {
                group: attributes.resource.group.as_str().into(),
                resource: attributes.resource.resource.as_str().into(),
                subresource: attributes.subresource.as_str().into(),
                namespace: attributes.namespace.as_str().into(),
                name: attributes.name.as_str().into(),
                ..AccessQuestion::default()
            },
        }
    }

    /// The value of `authorizer`.
    pub(super) fn value<'a>(&self) -> Value<'a> {
        Value::authorizer(self.authorizer.clone())
    }

    /// The value of `authorizer.requestResource`.
    pub(super) fn request_resource<'a>(&self) -> Value<'a> {
        Value::resource_check(self.authorizer.clone(), self.resource.clone())
    }
}

struct UserQuestions {
    user: Arc<User>,
    authorizer: Arc<dyn Authorizer>,
}

impl fmt::Debug for UserQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserQuestions").field("user", &self.user.name).finish_non_exhaustive()
    }
}

impl AccessAuthorizer for UserQuestions {
    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        let user = match &question.subject {
            AccessSubject::Requester => self.user.clone(),
            AccessSubject::ServiceAccount { namespace, name } => {
                Arc::new(service_account::user(namespace, name, ""))
            }
        };
        let mut attributes =
            Attributes { user, verb: question.verb.to_string().into(), ..Attributes::default() };
        match &question.path {
            Some(path) => attributes.path = path.to_string(),
            None => {
                attributes.group = question.group.to_string();
                attributes.version = "*".to_owned();
                attributes.resource = question.resource.to_string();
                attributes.subresource = question.subresource.to_string();
                attributes.namespace = question.namespace.to_string();
                attributes.name = question.name.to_string();
            }
        }
        let decision = self.authorizer.authorize(&attributes);
        AccessDecision { allowed: decision.allowed(), reason: decision.reason().into(), error: "".into() }
    }
}
