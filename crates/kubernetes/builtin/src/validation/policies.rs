//! Admission policies and their bindings. Every expression is compiled, as it is where it runs.

use std::collections::BTreeSet;

use capstan_cel::{Env, Program};
use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use super::Subject;
use super::admission::{match_conditions, rule_with_operations};
use super::report::{Report, get, list, same, text, texts};
use crate::expressions::{self, Declared, Output};

const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// Variables, validations and mutations of one policy. Upstream has no limit, but all of them are compiled here, and
/// each variable makes every expression after it dearer to compile.
const MAX_EXPRESSIONS: usize = 500;
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        return status(subject.new, report);
    }
    if subject.old.is_some() {
        // Upstream validates the changed object as a new one, and nothing else.
        report.errors.clear();
        subject.metadata(report);
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    match subject.kind {
        "ValidatingAdmissionPolicy" => validating(subject, spec, &path, report),
        "MutatingAdmissionPolicy" => mutating(subject, spec, &path, report),
        "ValidatingAdmissionPolicyBinding" => {
            binding(spec, &path, report);
            validation_actions(spec, &path.field("validationActions"), report);
        }
        "MutatingAdmissionPolicyBinding" => {
            binding(spec, &path, report);
            if let Some(resources) = get(spec, "matchResources") {
                mutating_operations(resources, &path.field("matchResources"), report);
            }
        }
        _ => {}
    }
}

/// What both kinds of policies have, in upstream's order of errors. Returns the environments of expressions.
fn policy(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, report: &mut Report) -> Environments {
    let mutating = subject.kind == "MutatingAdmissionPolicy";
    one_of(spec, "failurePolicy", &["Fail", "Ignore"], path, report);
    let params = get(spec, "paramKind");
    if let Some(kind) = params {
        param_kind(kind, &path.field("paramKind"), report);
    }
    let field = path.field("matchConstraints");
    match get(spec, "matchConstraints") {
        None => report.required(field, ""),
        Some(constraints) => {
            match_resources(constraints, &field, report);
            if list(constraints, "resourceRules").is_empty() {
                report.required(field.field("resourceRules"), "");
            }
            if mutating {
                mutating_operations(constraints, &field, report);
            }
        }
    }
    let before = subject.old.map(|old| &old["spec"]);
    let kept = before.is_some_and(|old| same(get(old, "matchConditions"), get(spec, "matchConditions")));
    if !kept {
        match_conditions(spec, params.is_some(), &path.field("matchConditions"), report);
    }
    variables(spec, params.is_some(), path, report)
}

/// Environments with the variables of a policy.
struct Environments {
    /// Of most expressions.
    full: Env,
    /// Of message expressions, which may not ask the authorizer.
    messages: Env,
    /// Of mutations.
    patches: Env,
}

fn variables(spec: &Value, params: bool, path: &Path<'_>, report: &mut Report) -> Environments {
    let base = |authorizer, patches| expressions::environment(Declared { params, authorizer, patches });
    let mut known: Vec<(&str, Option<Program>)> = Vec::new();
    let path = path.field("variables");
    // Declared one after the other: a variable sees those before it.
    let mut env = base(true, false);
    let given = list(spec, "variables");
    if given.len() > MAX_EXPRESSIONS {
        report.too_many(path, given.len(), MAX_EXPRESSIONS);
    }
    for (index, variable) in given.iter().take(MAX_EXPRESSIONS).enumerate() {
        let path = path.index(index);
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        if name.trim().is_empty() {
            report.required(path.field("name"), "name is not specified");
        } else if !is_identifier(name) {
            report.invalid(path.field("name"), name, "must be a valid CEL identifier");
        }
        if expression.trim().is_empty() {
            report.required(path.field("expression"), "expression is not specified");
            continue;
        }
        let program = match expressions::compile(&env, expression, Output::Any) {
            Ok(program) => Some(program),
            Err(error) => {
                report.expression(path.field("expression"), expression, error);
                None
            }
        };
        env = env.with_result(&expressions::variable_name(name), program.as_ref().map(Program::output));
        known.push((name, program));
    }
    let with = |env| expressions::with_variables(env, known.iter().map(|(n, p)| (*n, p.as_ref())));
    Environments {
        full: with(base(true, false)),
        messages: with(base(false, false)),
        patches: with(base(true, true)),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && chars.all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !capstan_cel::is_reserved(name)
}

fn validating(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, report: &mut Report) {
    let environments = policy(subject, spec, path, report);
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        report.required(path.field("validations"), detail);
        report.required(path.field("auditAnnotations"), detail);
        return;
    }
    let field = path.field("validations");
    if validations.len() > MAX_EXPRESSIONS {
        report.too_many(field, validations.len(), MAX_EXPRESSIONS);
    }
    for (index, item) in validations.iter().take(MAX_EXPRESSIONS).enumerate() {
        validation(item, &environments, &field.index(index), report);
    }
    let field = path.field("auditAnnotations");
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        report.invalid(field, spec["auditAnnotations"].clone(), detail);
    }
    let mut keys = BTreeSet::new();
    let policy_name = text(&subject.new["metadata"], "name");
    for (index, annotation) in annotations.iter().enumerate() {
        let path = field.index(index);
        audit_annotation(annotation, policy_name, &environments.full, &path, report);
        let key = text(annotation, "key");
        if !keys.insert(key) {
            report.duplicate(path.field("key"), key);
        }
    }
}

fn validation(item: &Value, environments: &Environments, path: &Path<'_>, report: &mut Report) {
    let expression = text(item, "expression");
    if expression.trim().is_empty() {
        report.required(path.field("expression"), "expression is not specified");
    } else if let Err(error) = expressions::compile(&environments.full, expression, Output::Bool) {
        report.expression(path.field("expression"), expression, error);
    }
    let message_expression = text(item, "messageExpression");
    let field = path.field("messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        report.invalid(field, message_expression, "must be non-empty if specified");
    } else if !message_expression.is_empty()
        && let Err(error) = expressions::compile(&environments.messages, message_expression, Output::Text)
    {
        report.expression(field, message_expression, error);
    }
    let message = text(item, "message");
    if !message.is_empty() && message.trim().is_empty() {
        report.invalid(path.field("message"), message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        report.invalid(path.field("message"), message, "must not contain line breaks");
    }
    if let Some(reason) = get(item, "reason").and_then(Value::as_str) {
        report.one_of(path.field("reason"), reason, &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

fn audit_annotation(annotation: &Value, policy_name: &str, env: &Env, path: &Path<'_>, report: &mut Report) {
    let key = text(annotation, "key");
    if policy_name.is_empty() {
        report.invalid(path.field("key"), key, "requires metadata.name be non-empty");
    } else {
        let name = format!("{policy_name}/{key}");
        report.each(path.field("key"), &name, meta::qualified_name(&name));
    }
    let given = text(annotation, "valueExpression");
    let expression = given.trim();
    let field = path.field("valueExpression");
    if expression.is_empty() {
        report.required(field, "valueExpression is not specified");
    } else if expression.len() > MAX_VALUE_EXPRESSION {
        report.required(field, format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length"));
    } else if let Err(error) = expressions::compile(env, expression, Output::TextOrNull) {
        report.expression(field, given, error);
    }
}

fn mutating(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, report: &mut Report) {
    let environments = policy(subject, spec, path, report);
    let mutations = list(spec, "mutations");
    let field = path.field("mutations");
    if mutations.is_empty() {
        report.required(field, "mutations must contain at least one item");
    }
    if mutations.len() > MAX_EXPRESSIONS {
        report.too_many(field, mutations.len(), MAX_EXPRESSIONS);
    }
    for (index, item) in mutations.iter().take(MAX_EXPRESSIONS).enumerate() {
        mutation(item, &environments.patches, &field.index(index), report);
    }
    one_of(spec, "reinvocationPolicy", &["IfNeeded", "Never"], path, report);
}

fn mutation(item: &Value, env: &Env, path: &Path<'_>, report: &mut Report) {
    let patch_type = text(item, "patchType");
    let (own, other, output) = match patch_type {
        "" => return report.required(path.field("patchType"), ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Output::JsonPatches),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Output::Object),
        unknown => {
            let known = ["ApplyConfiguration", "JSONPatch"];
            return report.not_supported(path.field("patchType"), unknown, &known);
        }
    };
    let field = path.field(own);
    match get(item, own) {
        None => report.required(field, format!("must be specified when patchType is {patch_type}")),
        Some(patch) => {
            let expression = text(patch, "expression").trim();
            if expression.is_empty() {
                report.required(field.field("expression"), "");
            } else if let Err(error) = expressions::compile(env, expression, output) {
                report.expression(field.field("expression"), expression, error);
            }
        }
    }
    if get(item, other).is_some() {
        let detail = format!("must not be specified when patchType is {patch_type}");
        report.invalid(path.field(other), format!("{{{other}}}"), detail);
    }
}

fn one_of(owner: &Value, key: &'static str, known: &[&str], path: &Path<'_>, report: &mut Report) {
    match get(owner, key).and_then(Value::as_str) {
        None | Some("") => report.required(path.field(key), ""),
        Some(value) => report.one_of(path.field(key), value, known),
    }
}

fn param_kind(kind: &Value, path: &Path<'_>, report: &mut Report) {
    let field = path.field("apiVersion");
    let api_version = text(kind, "apiVersion");
    let parts: Vec<&str> = api_version.split('/').collect();
    let group_and_version = match parts[..] {
        _ if api_version.is_empty() => {
            report.required(field, "");
            None
        }
        ["", ""] => Some(("", "")),
        [version] => Some(("", version)),
        [group, version] => Some((group, version)),
        _ => {
            report.invalid(field, api_version, format!("unexpected GroupVersion string: {api_version}"));
            None
        }
    };
    if let Some((group, version)) = group_and_version {
        let errors = meta::dns1123_subdomain(group);
        if !group.is_empty() && !errors.is_empty() {
            report.invalid(field, group, errors.join(","));
        }
        let errors = meta::dns1035_label(version);
        if version.is_empty() {
            report.invalid(field, api_version, "version must be specified");
        } else if !errors.is_empty() {
            report.invalid(field, version, errors.join(","));
        }
    }
    let kind = text(kind, "kind");
    let errors = meta::dns1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        report.required(path.field("kind"), "");
    } else if !errors.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", errors.join(","));
        report.invalid(path.field("kind"), kind, detail);
    }
}

fn match_resources(resources: &Value, path: &Path<'_>, report: &mut Report) {
    one_of(resources, "matchPolicy", &["Equivalent", "Exact"], path, report);
    for key in ["namespaceSelector", "objectSelector"] {
        match get(resources, key) {
            None => report.required(path.field(key), ""),
            Some(selector) => report.extend(labels::validate(selector, &path.field(key))),
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let field = path.field(key);
        for (index, rule) in list(resources, key).iter().enumerate() {
            let path = field.index(index);
            let names = path.field("resourceNames");
            let mut seen = BTreeSet::new();
            for (index, name) in texts(rule, "resourceNames").into_iter().enumerate() {
                report.each(names.index(index), name, meta::path_segment(name, false));
                if !seen.insert(name) {
                    report.duplicate(names.index(index), name);
                }
            }
            rule_with_operations(rule, &path, report);
        }
    }
}

/// Deletions cannot be mutated.
fn mutating_operations(resources: &Value, path: &Path<'_>, report: &mut Report) {
    let field = path.field("resourceRules");
    for rule in list(resources, "resourceRules") {
        for operation in texts(rule, "operations") {
            report.one_of(field.field("operations"), operation, &MUTATING_OPERATIONS);
        }
    }
}

fn binding(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        report.required(path.field("policyName"), "");
    } else {
        report.each(path.field("policyName"), policy, meta::name_is_dns_subdomain(policy, false));
    }
    if let Some(reference) = get(spec, "paramRef") {
        param_ref(reference, &path.field("paramRef"), report);
    }
    if let Some(resources) = get(spec, "matchResources") {
        match_resources(resources, &path.field("matchResources"), report);
    }
}

fn param_ref(reference: &Value, path: &Path<'_>, report: &mut Report) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (text(reference, "name"), get(reference, "selector"));
    if !name.is_empty() {
        report.each(path.field("name"), name, meta::path_segment(name, false));
        if selector.is_some() {
            report.forbidden(path.field("name"), EXCLUSIVE);
        }
    }
    if let Some(selector) = selector {
        report.extend(labels::validate(selector, &path.field("selector")));
        if !name.is_empty() {
            report.forbidden(path.field("selector"), EXCLUSIVE);
        }
    }
    if name.is_empty() && selector.is_none() {
        report.required(*path, "one of name or selector must be specified");
    }
    one_of(reference, "parameterNotFoundAction", &["Deny", "Allow"], path, report);
}

fn validation_actions(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let actions = texts(spec, "validationActions");
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        report.one_of(path.index(index), action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(*action) {
            report.duplicate(path.index(index), *action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in \
                      the API response and headers serves no purpose)";
        report.invalid(*path, spec["validationActions"].clone(), detail);
    }
    if seen.is_empty() {
        report.required(*path, "at least one validation action is required");
    }
}

fn status(object: &Value, report: &mut Report) {
    let status = &object["status"];
    let path = Path::at("status");
    let path = path.field("typeChecking");
    let path = path.field("expressionWarnings");
    for (index, warning) in list(&status["typeChecking"], "expressionWarnings").iter().enumerate() {
        let path = path.index(index);
        for key in ["warning", "fieldRef"] {
            if text(warning, key).trim().is_empty() {
                report.required(path.field(key), "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{defaults, validation};

    fn errors(kind: &str, spec: Value) -> Vec<String> {
        let group = "admissionregistration.k8s.io";
        let mut object = json!({"metadata": {"name": "p.example.com", "uid": "x"}, "spec": spec});
        defaults::apply(group, "v1", kind, &mut object);
        let errors = validation::validate(group, kind, "", &object, None);
        errors.iter().map(ToString::to_string).collect()
    }

    fn with(changes: Value) -> Value {
        let mut spec = json!({
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["*"],
            }]},
            "validations": [{"expression": "object.spec.replicas > 1"}],
        });
        for (key, value) in changes.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    }

    fn assert_one(errors: Vec<String>, wanted: &str) {
        assert!(errors.len() == 1 && errors[0].contains(wanted), "{wanted}: {errors:#?}");
    }

    #[test]
    fn a_validating_policy_names_what_is_wrong_with_it() {
        let kind = "ValidatingAdmissionPolicy";
        assert_eq!(errors(kind, with(json!({}))), [""; 0]);
        let table = [
            (
                json!({"validations": [{"expression": "object.x >"}]}),
                "spec.validations[0].expression: Invalid value",
            ),
            (json!({"validations": [{"expression": "1"}]}), "must evaluate to bool but got int"),
            (json!({"validations": [{"expression": "params.x"}]}), "undeclared reference to 'params'"),
            (
                json!({"validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}]}),
                "undeclared reference to 'authorizer'",
            ),
            (
                json!({"validations": [{"expression": "true", "message": "a\nb"}]}),
                "must not contain line breaks",
            ),
            (
                json!({"validations": [{"expression": "true", "reason": "Gone"}]}),
                "spec.validations[0].reason: Unsupported value",
            ),
            (json!({"variables": [{"name": "for", "expression": "1"}]}), "must be a valid CEL identifier"),
            (
                json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}),
                "spec.variables[0].expression",
            ),
            (
                json!({"matchConditions": [{"name": "a", "expression": "variables.a"}]}),
                "spec.matchConditions[0].expression",
            ),
            (
                json!({"paramKind": {"apiVersion": "a/b/c", "kind": "X"}}),
                "unexpected GroupVersion string: a/b/c",
            ),
            (
                json!({"auditAnnotations": [{"key": "a", "valueExpression": "1"}]}),
                "must evaluate to one of [string null_type]",
            ),
            (json!({"matchConstraints": {}}), "spec.matchConstraints.resourceRules: Required value"),
            (
                json!({"variables": vec![json!({"name": "a", "expression": "1"}); 501]}),
                "spec.variables: Too many: 501: must have at most 500 items",
            ),
        ];
        for (changes, wanted) in table {
            assert_one(errors(kind, with(changes)), wanted);
        }
    }

    #[test]
    fn a_mutating_policy_builds_a_patch_of_its_type() {
        let kind = "MutatingAdmissionPolicy";
        let spec = |mutation: Value| {
            let mut spec = with(json!({"mutations": [mutation], "reinvocationPolicy": "Never"}));
            spec["matchConstraints"]["resourceRules"][0]["operations"] = json!(["CREATE"]);
            spec
        };
        let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
        let patch =
            |expression: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
        assert_eq!(errors(kind, spec(apply("Object{spec: Object.spec{replicas: 3}}"))), [""; 0]);
        assert_eq!(errors(kind, spec(patch("[JSONPatch{op: 'remove', path: '/spec/paused'}]"))), [""; 0]);
        assert_one(errors(kind, spec(apply("{'a': 1}"))), "must evaluate to Object but got map(string, int)");
        assert_one(errors(kind, spec(patch("Object{}"))), "must evaluate to list(JSONPatch) but got Object");
        let mut both = apply("Object{}");
        both["jsonPatch"] = json!({"expression": "[]"});
        assert_one(errors(kind, spec(both)), "must not be specified when patchType is ApplyConfiguration");
        let mut deletes = spec(apply("Object{}"));
        deletes["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]);
        assert_one(
            errors(kind, deletes),
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\"",
        );
    }

    #[test]
    fn a_binding_refers_to_a_policy_and_to_parameters_by_name_or_selector() {
        let kind = "ValidatingAdmissionPolicyBinding";
        let good = json!({"policyName": "p.example.com", "validationActions": ["Deny"]});
        assert_eq!(errors(kind, good.clone()), [""; 0]);
        let table = [
            ("policyName", json!("A"), "spec.policyName: Invalid value"),
            ("validationActions", json!(["Deny", "Warn"]), "must not contain both Deny and Warn"),
            ("validationActions", json!([]), "at least one validation action is required"),
            (
                "paramRef",
                json!({"parameterNotFoundAction": "Deny"}),
                "one of name or selector must be specified",
            ),
            ("paramRef", json!({"name": "x"}), "spec.paramRef.parameterNotFoundAction: Required value"),
            (
                "matchResources",
                json!({"matchPolicy": "Some"}),
                "spec.matchResources.matchPolicy: Unsupported value",
            ),
        ];
        for (key, value, wanted) in table {
            let mut spec = good.clone();
            spec[key] = value;
            assert_one(errors(kind, spec), wanted);
        }
    }
}
