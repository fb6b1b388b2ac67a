//! Evaluates ValidatingAdmissionPolicies.

use capstan_cel::limits::{MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES, RUNTIME_CEL_COST_BUDGET};
use capstan_cel::{Budget, Value as CelValue};
use capstan_schema::bounded::cut;
use serde_json::{Value, json};

use super::compiled::{Binding, Policy, Validation, Validations};
use super::evaluation::{Evaluation, OUT_OF_BUDGET, OutOfBudget, Subject};
use super::set::PolicyHook;
use super::{Policies, RequestAuthorizer, RequestBudget, params, request_variable};
use crate::admission::versioned_objects::VersionedObjects;
use crate::admission::{AdmissionAttributes, Representations};
use crate::status::{Cause, Result, Status};

/// Longest value of an audit annotation, in bytes.
const MAX_ANNOTATION: usize = 10 * 1024;

/// Why a request is rejected.
struct Denial {
    policy: String,
    binding: Option<String>,
    message: String,
    reason: Option<String>,
}

/// One validation that did not hold, or could not be evaluated.
struct Finding {
    /// Position of the expression.
    index: usize,
    message: String,
    reason: Option<String>,
}

/// The key of an audit annotation, and its value or why there is none.
type ComputedAnnotation = (String, Result<String, String>);

/// The result of a policy for one parameter.
#[derive(Default)]
struct Outcome {
    findings: Vec<Finding>,
    annotations: Vec<ComputedAnnotation>,
}

pub(super) async fn run(
    policies: &Policies,
    hooks: &[PolicyHook<Validations>],
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
) -> Result<()> {
    let mut denials = Vec::new();
    let mut budget = RequestBudget::new();
    for hook in hooks {
        run_policy(policies, hook, attributes, representations, &mut budget, &mut denials).await?;
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(denied(attributes, &first)),
    }
}

async fn run_policy(
    policies: &Policies,
    PolicyHook { policy, bindings }: &PolicyHook<Validations>,
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
    budget: &mut RequestBudget,
    denials: &mut Vec<Denial>,
) -> Result<()> {
    let own = VersionedObjects::of_request(attributes);
    let source = &*policies.source;
    let misconfigured = |binding: Option<&Binding>, why: String| {
        let what = if binding.is_some() { "binding" } else { "policy" };
        (!policy.ignore_failure).then(|| Denial {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message: format!("failed to configure {what}: {why}"),
            reason: None,
        })
    };
    let (resource, kind) = match policy.constraints.matches(attributes, &own, representations, source) {
        Ok(Some(matched)) => matched,
        Ok(None) => return Ok(()),
        Err(why) => {
            denials.extend(misconfigured(None, why));
            return Ok(());
        }
    };
    if let Some(kind) = policy.param_kind.as_ref().filter(|k| representations.is_namespaced(k).is_none()) {
        let why = format!("failed to find resource referenced by paramKind: '{kind}'");
        denials.extend(misconfigured(None, why));
        return Ok(());
    }
    let mut converted = None;
    let mut request = None;
    let mut annotations = Annotations::default();
    for binding in bindings {
        let matched = match &binding.resources {
            None => Ok(true),
            Some(resources) => {
                resources.matches(attributes, &own, representations, source).map(|matched| matched.is_some())
            }
        };
        match matched {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                denials.extend(misconfigured(Some(binding), why));
                continue;
            }
        }
        let kind_of_params = policy.param_kind.as_ref();
        let reference = binding.param_ref.as_ref();
        let params = match params::collect(kind_of_params, reference, attributes, representations).await {
            Ok(params) => params,
            Err(why) => {
                denials.extend(misconfigured(Some(binding), why));
                continue;
            }
        };
        if converted.is_none() && kind != own.kind && !params.is_empty() {
            match own.converted(&kind, attributes, representations).await {
                Ok(objects) => converted = Some(objects),
                Err(status) => {
                    let why = format!("failed to convert object version: {}", status.message);
                    denials.extend(misconfigured(Some(binding), why));
                    continue;
                }
            }
        }
        let seen = converted.as_ref().unwrap_or(&own);
        let request = request.get_or_insert_with(|| request_variable(attributes, &resource, &kind));
        let namespace = policies.namespace(attributes)?;
        for param in &params {
            let subject = Subject {
                object: seen.object().unwrap_or(&Value::Null),
                old_object: seen.old_object().unwrap_or(&Value::Null),
                request,
                params: param,
                namespace: &namespace,
                authorizer: RequestAuthorizer::of(attributes, &policies.authorizer),
            };
            let outcome = evaluate(policy, &subject, budget);
            for finding in outcome.findings {
                act(policy, binding, &finding, attributes, denials);
            }
            for (key, value) in outcome.annotations {
                match value {
                    Ok(value) => annotations.add(key, value),
                    Err(message) => denials.push(Denial {
                        policy: policy.name.clone(),
                        binding: Some(binding.name.clone()),
                        message,
                        reason: None,
                    }),
                }
            }
        }
    }
    annotations.publish(&policy.name, attributes);
    Ok(())
}

/// Does what the binding says about a finding.
fn act(
    policy: &Policy<Validations>,
    binding: &Binding,
    finding: &Finding,
    attributes: &AdmissionAttributes,
    denials: &mut Vec<Denial>,
) {
    for action in &binding.actions {
        match action.as_str() {
            "Deny" => denials.push(Denial {
                policy: policy.name.clone(),
                binding: Some(binding.name.clone()),
                message: finding.message.clone(),
                reason: finding.reason.clone(),
            }),
            "Warn" => attributes.warnings.add(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                policy.name, binding.name, finding.message
            )),
            "Audit" => {
                let failure = json!([{
                    "message": finding.message,
                    "policy": policy.name,
                    "binding": binding.name,
                    "expressionIndex": finding.index,
                    "validationActions": binding.actions,
                }]);
                let key = "validation.policy.admission.k8s.io/validation_failure";
                attributes.annotations.add(key, failure.to_string());
            }
            _ => {}
        }
    }
}

fn evaluate(policy: &Policy<Validations>, subject: &Subject<'_>, request: &mut RequestBudget) -> Outcome {
    match policy.conditions.hold(subject, request) {
        Ok(true) => {}
        Ok(false) => return Outcome::default(),
        Err(message) => return failed(policy, message),
    }
    let most = RUNTIME_CEL_COST_BUDGET;
    let mut outcome = match request.spend(most, policy.weight, |budget| findings(policy, subject, budget)) {
        Ok(findings) => Outcome { findings, annotations: Vec::new() },
        Err(OutOfBudget) => return failed(policy, OUT_OF_BUDGET.to_owned()),
    };
    match request.spend(most, policy.weight, |budget| annotations(policy, subject, budget)) {
        Ok(annotations) => outcome.annotations = annotations,
        Err(OutOfBudget) => return failed(policy, OUT_OF_BUDGET.to_owned()),
    }
    outcome
}

/// The validations that do not hold or cannot be evaluated.
fn findings(
    policy: &Policy<Validations>,
    subject: &Subject<'_>,
    budget: &mut Budget,
) -> Result<Vec<Finding>, OutOfBudget> {
    let validations = &policy.rules.validations;
    let evaluation = Evaluation::new(subject.activation(true), &policy.variables);
    let mut results = Vec::with_capacity(validations.len());
    for validation in validations {
        results.push(evaluation.run(&validation.expression, budget)?);
    }
    // Messages are computed with what is left, in a context that cannot ask the authorizer.
    let messages = Evaluation::new(subject.activation(false), &policy.variables);
    let mut found = Vec::new();
    let mut computed = Vec::with_capacity(validations.len());
    let mut out_of_budget = false;
    for Validation { message_expression, .. } in validations {
        let message = match message_expression {
            Some(expression) if !out_of_budget => messages.run(expression, budget),
            _ => Ok(Err(String::new())),
        };
        out_of_budget |= message.is_err();
        computed.push(message.ok().and_then(Result::ok));
    }
    for (index, (validation, result)) in validations.iter().zip(results).enumerate() {
        let finding = match result {
            Ok(_) if out_of_budget => Err(format!("failed messageExpression: {OUT_OF_BUDGET}")),
            Ok(value) if value.as_bool() == Some(true) => continue,
            Ok(_) => Ok(denial_message(validation, computed[index].as_ref())),
            Err(message) => Err(message),
        };
        match finding {
            Ok(message) => {
                let reason = validation.reason.clone();
                found.push(Finding { index, message, reason });
            }
            Err(message) if !policy.ignore_failure => {
                found.push(Finding { index, message, reason: None });
            }
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Audit annotations. Empty values are left out.
fn annotations(
    policy: &Policy<Validations>,
    subject: &Subject<'_>,
    budget: &mut Budget,
) -> Result<Vec<ComputedAnnotation>, OutOfBudget> {
    let evaluation = Evaluation::new(subject.activation(true), &policy.variables);
    let mut found = Vec::new();
    for annotation in &policy.rules.annotations {
        let value = match evaluation.run(&annotation.expression, budget)? {
            Ok(CelValue::Null) => continue,
            Ok(value) => match value.as_str().map(str::trim) {
                Some("") => continue,
                Some(text) => Ok(cut(text, MAX_ANNOTATION)),
                None => Err(format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either \
                     string or null.",
                    annotation.expression.text,
                    value.type_name()
                )),
            },
            Err(_) if policy.ignore_failure => continue,
            Err(message) => Err(message),
        };
        found.push((annotation.key.clone(), value));
    }
    Ok(found)
}

/// The result of a policy that could not be evaluated.
fn failed(policy: &Policy<Validations>, message: String) -> Outcome {
    let finding = (!policy.ignore_failure).then_some(Finding { index: 0, message, reason: None });
    Outcome { findings: finding.into_iter().collect(), annotations: Vec::new() }
}

fn denial_message(validation: &Validation, computed: Option<&CelValue<'_>>) -> String {
    let computed = computed.and_then(CelValue::as_str).map(str::trim).filter(|text| {
        !text.is_empty() && text.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES && !text.contains('\n')
    });
    match computed {
        Some(text) => text.to_owned(),
        None if !validation.message.is_empty() => validation.message.clone(),
        None => format!("failed expression: {}", validation.expression.text.trim()),
    }
}

fn denied(attributes: &AdmissionAttributes, denial: &Denial) -> Status {
    let Denial { policy, binding, message, reason } = denial;
    let message = match binding {
        Some(binding) => {
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}")
        }
        None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
    };
    let mut status = attributes.forbidden(&message);
    let reason = reason.as_deref().unwrap_or("Invalid");
    status.reason = reason.to_owned().into();
    status.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    if let Some(details) = &mut status.details {
        details.causes.push(Cause { reason: String::new(), message, field: String::new() });
    }
    status
}

/// Audit annotations of one policy. Different values of one key are joined.
#[derive(Default)]
struct Annotations(Vec<(String, Vec<String>)>);

impl Annotations {
    fn add(&mut self, key: String, value: String) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((key, vec![value])),
        }
    }

    fn publish(self, policy: &str, attributes: &AdmissionAttributes) {
        for (key, values) in self.0 {
            attributes.annotations.add(format!("{policy}/{key}"), values.join(", "));
        }
    }
}
