//! The `authorizer` variable of admission expressions.

use std::fmt;
use std::sync::Arc;

use super::{Opaque, Outcome, fail, no_such_overload};
use crate::eval::Meter;
use crate::value::Value;

/// Decides the questions that expressions ask the authorizer.
pub trait AccessAuthorizer: fmt::Debug + Send + Sync {
    /// Whether the subject may do this.
    fn decide(&self, question: &AccessQuestion) -> AccessDecision;
}

/// Who asks: the user of the request, or a ServiceAccount that the expression names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessSubject {
    /// The user of the request.
    #[default]
    Requester,
    /// A ServiceAccount.
    ServiceAccount {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
}

/// One question. Either `path` is set, or the resource is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessQuestion {
    /// Who asks.
    pub subject: AccessSubject,
    /// The verb.
    pub verb: Arc<str>,
    /// The path of a non-resource question.
    pub path: Option<Arc<str>>,
    /// The API group.
    pub group: Arc<str>,
    /// The plural name of the resource.
    pub resource: Arc<str>,
    /// The subresource, or empty.
    pub subresource: Arc<str>,
    /// The namespace, or empty.
    pub namespace: Arc<str>,
    /// The object, or empty.
    pub name: Arc<str>,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: Arc<str>,
    /// Why the authorizer could not decide; empty if it could.
    pub error: Arc<str>,
}

/// A step on the way from `authorizer` to a decision.
#[derive(Clone, Debug)]
pub struct Access {
    stage: Stage,
    authorizer: Arc<dyn AccessAuthorizer>,
    question: AccessQuestion,
    decision: AccessDecision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision,
}

impl Access {
    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision => "kubernetes.authorization.Decision",
        }
    }

    pub(crate) fn go_type(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "library.authorizerVal",
            Stage::Path => "library.pathCheckVal",
            Stage::Group => "library.groupCheckVal",
            Stage::Resource => "library.resourceCheckVal",
            Stage::Decision => "library.decisionVal",
        }
    }

    fn at(&self, stage: Stage, change: impl FnOnce(&mut AccessQuestion)) -> Value<'static> {
        let mut next = Self { stage, ..self.clone() };
        change(&mut next.question);
        Value::Opaque(Opaque::Access(Arc::new(next)))
    }
}

impl Value<'_> {
    /// The value of `authorizer`.
    #[must_use]
    pub fn authorizer(authorizer: Arc<dyn AccessAuthorizer>) -> Self {
        Self::access(Stage::Authorizer, authorizer, AccessQuestion::default())
    }

    /// The value of `authorizer.requestResource`: a check of the resource that the question names.
    #[must_use]
    pub fn resource_check(authorizer: Arc<dyn AccessAuthorizer>, question: AccessQuestion) -> Self {
        Self::access(Stage::Resource, authorizer, question)
    }

    fn access(stage: Stage, authorizer: Arc<dyn AccessAuthorizer>, question: AccessQuestion) -> Self {
        let decision = AccessDecision::default();
        Self::Opaque(Opaque::Access(Arc::new(Access { stage, authorizer, question, decision })))
    }
}

/// The receiver of a call, and its text argument.
fn step<'v>(args: &'v [Value<'_>], stage: Stage) -> Option<(&'v Access, &'v str)> {
    match args {
        [Value::Opaque(Opaque::Access(access)), Value::String(text), ..] if access.stage == stage => {
            Some((access, text))
        }
        _ => None,
    }
}

pub(crate) fn path<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, path)) = step(args, Stage::Authorizer) else { return no_such_overload() };
    if path.trim().is_empty() {
        return fail("path must not be empty");
    }
    Ok(access.at(Stage::Path, |question| question.path = Some(path.into())))
}

pub(crate) fn group<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, group)) = step(args, Stage::Authorizer) else { return no_such_overload() };
    Ok(access.at(Stage::Group, |question| question.group = group.into()))
}

pub(crate) fn service_account<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let (Some((access, namespace)), Some(Value::String(name))) = (step(args, Stage::Authorizer), args.get(2))
    else {
        return no_such_overload();
    };
    if !is_dns_name(name, 253, true) {
        return fail("Invalid service account name");
    }
    if !is_dns_name(namespace, 63, false) {
        return fail("Invalid service account namespace");
    }
    let subject = AccessSubject::ServiceAccount { namespace: namespace.into(), name: (&**name).into() };
    Ok(access.at(Stage::Authorizer, |question| question.subject = subject))
}

/// A DNS label, or several with dots in between.
fn is_dns_name(name: &str, max: usize, dots: bool) -> bool {
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        !label.is_empty()
            && label.bytes().all(|b| inner(b) || b == b'-')
            && label.bytes().next().is_some_and(inner)
            && label.bytes().last().is_some_and(inner)
    };
    name.len() <= max && if dots { name.split('.').all(label) } else { label(name) }
}

pub(crate) fn resource<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, resource)) = step(args, Stage::Group) else { return no_such_overload() };
    if resource.trim().is_empty() {
        return fail("resource must not be empty");
    }
    Ok(access.at(Stage::Resource, |question| question.resource = resource.into()))
}

pub(crate) fn subresource<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, text)) = step(args, Stage::Resource) else { return no_such_overload() };
    Ok(access.at(Stage::Resource, |question| question.subresource = text.into()))
}

pub(crate) fn namespace<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, text)) = step(args, Stage::Resource) else { return no_such_overload() };
    Ok(access.at(Stage::Resource, |question| question.namespace = text.into()))
}

pub(crate) fn name<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, text)) = step(args, Stage::Resource) else { return no_such_overload() };
    Ok(access.at(Stage::Resource, |question| question.name = text.into()))
}

/// Selectors only narrow a question. RBAC, which decides here, has no rules about them.
pub(crate) fn selector<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, _)) = step(args, Stage::Resource) else { return no_such_overload() };
    Ok(access.at(Stage::Resource, |_| ()))
}

pub(crate) fn check<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some((access, verb)) = step(args, Stage::Path).or_else(|| step(args, Stage::Resource)) else {
        return no_such_overload();
    };
    let question = AccessQuestion { verb: verb.into(), ..access.question.clone() };
    let decision = access.authorizer.decide(&question);
    let next = Access { stage: Stage::Decision, question, decision, ..access.clone() };
    Ok(Value::Opaque(Opaque::Access(Arc::new(next))))
}

fn decided<'v>(args: &'v [Value<'_>]) -> Option<&'v AccessDecision> {
    match args {
        [Value::Opaque(Opaque::Access(access))] if access.stage == Stage::Decision => Some(&access.decision),
        _ => None,
    }
}

pub(crate) fn errored<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    decided(args).map_or_else(no_such_overload, |decision| Ok(Value::Bool(!decision.error.is_empty())))
}

pub(crate) fn error<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    decided(args).map_or_else(no_such_overload, |decision| Ok(Value::string(decision.error.clone())))
}

pub(crate) fn allowed<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    decided(args).map_or_else(no_such_overload, |decision| Ok(Value::Bool(decision.allowed)))
}

pub(crate) fn reason<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    decided(args).map_or_else(no_such_overload, |decision| Ok(Value::string(decision.reason.clone())))
}
