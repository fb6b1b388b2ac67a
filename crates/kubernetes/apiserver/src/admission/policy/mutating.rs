//! Evaluates MutatingAdmissionPolicies, one after the other.

use std::collections::HashSet;
use std::sync::Arc;

use capstan_cel::limits::RUNTIME_CEL_COST_BUDGET;
use capstan_schema::Schema;
use serde_json::Value;

use super::compiled::{Mutation, Mutations, Policy};
use super::evaluation::{Evaluation, OUT_OF_BUDGET, OutOfBudget, Subject};
use super::matching::Matched;
use super::set::PolicyHook;
use super::{Policies, RequestAuthorizer, RequestBudget, params, patch, request_variable};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::versioned_objects::VersionedObjects;
use crate::admission::{AdmissionAttributes, Representations};
use crate::status::{Cause, Result, Status};

/// A policy to run with one parameter.
struct Invocation<'a> {
    policy: &'a Arc<Policy<Mutations>>,
    binding: &'a str,
    /// Identifies the invocation in both passes.
    id: String,
    matched: Matched,
    param: Value,
}

/// Why a policy could not be applied. Its failure policy decides what that means.
struct PolicyError {
    message: String,
    invalid: bool,
}

pub(super) async fn run(
    policies: &Policies,
    hooks: &[PolicyHook<Mutations>],
    attributes: &mut AdmissionAttributes,
    representations: &dyn Representations,
) -> Result<()> {
    let mut errors = Vec::new();
    let invocations = invocations(policies, hooks, attributes, representations, &mut errors).await;
    let mut reinvocation = std::mem::take(&mut attributes.reinvocations.policies);
    let only = attributes.reinvocations.second_pass.then(|| reinvocation.enter(attributes.object.as_ref()));
    if !invocations.is_empty() {
        let pass = Pass { policies, representations, only: only.as_ref() };
        pass.run(&invocations, attributes, &mut reinvocation, &mut errors).await?;
    }
    reinvocation.leave(attributes.object.as_ref());
    attributes.reinvocations.policies = reinvocation;
    match errors.is_empty() {
        true => Ok(()),
        false => Err(denied(attributes, errors)),
    }
}

/// The policies that match the request, with their parameters.
async fn invocations<'a>(
    policies: &Policies,
    hooks: &'a [PolicyHook<Mutations>],
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
    errors: &mut Vec<PolicyError>,
) -> Vec<Invocation<'a>> {
    let own = VersionedObjects::of_request(attributes);
    let source = &*policies.source;
    let mut found = Vec::new();
    for PolicyHook { policy, bindings } in hooks {
        let mut fail = |binding: Option<&str>, why: String| {
            let message = match binding {
                Some(binding) => format!(
                    "policy '{}' with binding '{binding}' denied request: failed to configure binding: {why}",
                    policy.name
                ),
                None => format!("policy {:?} denied request: failed to configure policy: {why}", policy.name),
            };
            if !policy.ignore_failure {
                errors.push(PolicyError { message, invalid: false });
            }
        };
        let matched = match policy.constraints.matches(attributes, &own, representations, source) {
            Ok(Some(matched)) => matched,
            Ok(None) => continue,
            Err(why) => {
                fail(None, why);
                continue;
            }
        };
        let params_kind = policy.param_kind.as_ref();
        if let Some(kind) = params_kind.filter(|kind| representations.is_namespaced(kind).is_none()) {
            fail(None, format!("failed to find resource referenced by paramKind: '{kind}'"));
            continue;
        }
        for binding in bindings {
            if let Some(resources) = &binding.resources {
                match resources.matches(attributes, &own, representations, source) {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(why) => {
                        fail(Some(&binding.name), why);
                        continue;
                    }
                }
            }
            let reference = binding.param_ref.as_ref();
            match params::collect(params_kind, reference, attributes, representations).await {
                Err(why) => fail(Some(&binding.name), why),
                Ok(params) => found.extend(params.into_iter().map(|param| {
                    let text = |key: &str| param["metadata"][key].as_str().unwrap_or_default();
                    let param_id = format!("{}/{}", text("namespace"), text("name"));
                    Invocation {
                        policy,
                        binding: &binding.name,
                        id: format!("{}/{}/{param_id}", policy.name, binding.name),
                        matched: matched.clone(),
                        param,
                    }
                })),
            }
        }
    }
    found
}

/// One pass over the policies.
struct Pass<'a> {
    policies: &'a Policies,
    representations: &'a dyn Representations,
    /// In the second pass, what runs again.
    only: Option<&'a HashSet<String>>,
}

impl Pass<'_> {
    async fn run(
        &self,
        invocations: &[Invocation<'_>],
        attributes: &mut AdmissionAttributes,
        reinvocation: &mut Reinvocation,
        errors: &mut Vec<PolicyError>,
    ) -> Result<()> {
        let namespace = self.policies.namespace(attributes)?;
        let mut objects = VersionedObjects::taken_from(attributes);
        let mut budget = RequestBudget::new();
        for invocation in invocations {
            if self.only.is_some_and(|only| !only.contains(&invocation.id)) {
                continue;
            }
            let kind = &invocation.matched.1;
            if objects.kind != *kind {
                objects = objects.converted(kind, attributes, self.representations).await?;
            }
            let before = objects.object().cloned();
            let ran = self.invoke(invocation, attributes, &mut objects, &namespace, &mut budget, errors)?;
            if !ran {
                continue;
            }
            if objects.object() != before.as_ref() {
                reinvocation.record_change();
            }
            if invocation.policy.rules.reinvoke {
                reinvocation.record_run(&invocation.id);
            }
        }
        objects.give_back(attributes, self.representations).await
    }

    /// Applies the mutations of a policy. Returns whether its conditions hold.
    fn invoke(
        &self,
        invocation: &Invocation<'_>,
        attributes: &AdmissionAttributes,
        objects: &mut VersionedObjects<'_>,
        namespace: &Value,
        budget: &mut RequestBudget,
        errors: &mut Vec<PolicyError>,
    ) -> Result<bool> {
        let Invocation { policy, binding, matched: (resource, kind), param, .. } = invocation;
        let mut fail = |why: String| {
            if !policy.ignore_failure {
                let message =
                    format!("policy '{}' with binding '{binding}' denied request: {why}", policy.name);
                errors.push(PolicyError { message, invalid: true });
            }
        };
        let request = request_variable(attributes, resource, kind);
        let authorizer = RequestAuthorizer::of(attributes, &self.policies.authorizer);
        let mut first = true;
        for mutation in &policy.rules.mutations {
            let Some(object) = objects.object() else { return Ok(false) };
            let subject = Subject {
                object,
                old_object: objects.old_object().unwrap_or(&Value::Null),
                request: &request,
                params: param,
                namespace,
                authorizer: authorizer.clone(),
            };
            if std::mem::take(&mut first) {
                match policy.conditions.hold(&subject, budget) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(why) => {
                        fail(why);
                        return Ok(false);
                    }
                }
            }
            let Some(schema) = self.representations.schema(kind) else {
                return Err(Status::unavailable(format!(
                    "Resource kind {kind} not found. There can be a delay between when CustomResourceDefinitions \
                     are created and when they are available."
                )));
            };
            match mutated(policy, mutation, &subject, &schema, budget) {
                Err(why) => fail(why),
                Ok(patched) => {
                    let settled = match mutation {
                        Mutation::Apply(_) => self.representations.normalise(patched, kind)?,
                        Mutation::JsonPatch(_) => self.representations.normalise_strictly(patched, kind)?,
                    };
                    objects.replace(settled);
                }
            }
        }
        Ok(true)
    }
}

/// The object after one mutation.
fn mutated(
    policy: &Policy<Mutations>,
    mutation: &Mutation,
    subject: &Subject<'_>,
    schema: &Schema,
    budget: &mut RequestBudget,
) -> Result<Value, String> {
    let (Mutation::Apply(expression) | Mutation::JsonPatch(expression)) = mutation;
    if let Err(error) = &expression.program {
        return Err(error.clone());
    }
    let evaluation = Evaluation::new(subject.activation(true), &policy.variables);
    let most = RUNTIME_CEL_COST_BUDGET;
    let value = budget.spend(most, policy.weight, |budget| evaluation.run(expression, budget));
    let value = value.map_err(|OutOfBudget| OUT_OF_BUDGET.to_owned())??;
    match mutation {
        Mutation::Apply(_) => patch::apply(subject.object, &value, schema),
        Mutation::JsonPatch(_) => patch::json_patch(subject.object, &value),
    }
}

fn denied(attributes: &AdmissionAttributes, errors: Vec<PolicyError>) -> Status {
    let mut status = attributes.forbidden("admission request denied by policy");
    if let Some(first) = errors.first() {
        status.message.clone_from(&first.message);
        if first.invalid {
            status.reason = "Invalid".into();
        }
    }
    if let Some(details) = &mut status.details {
        let causes = errors.into_iter();
        details.causes.extend(causes.map(|error| Cause {
            reason: String::new(),
            message: error.message,
            field: String::new(),
        }));
    }
    status
}
