//! Type checks of ValidatingAdmissionPolicies: their expressions against the schemas of the resources they are about.
//! The warnings are in the status of a policy and change nothing else.

use std::collections::BTreeSet;

use capstan_builtin::expressions::{self, Declared};
use capstan_cel::{CompileError, DeclType, Env, Program};
use capstan_schema::rules;
use serde_json::{Value, json};

use crate::admission::GroupVersionKind;
use crate::registry::{Registry, Resource};

/// Most kinds that one policy is checked against.
const MAX_KINDS: usize = 10;

/// `expressionWarnings` of a policy.
pub(crate) fn warnings(policy: &Value, registry: &Registry) -> Vec<Value> {
    let spec = &policy["spec"];
    let kinds: Vec<(GroupVersionKind, DeclType)> = resources(spec, registry)
        .into_iter()
        .map(|resource| (kind_of(resource), rules::of_object(&resource.schema)))
        .collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    let param_kind = Some(&spec["paramKind"]).filter(|kind| kind.is_object()).map(GroupVersionKind::of);
    let params = param_kind.as_ref().and_then(|kind| {
        let resources = registry.resources.get(&(kind.group.clone(), kind.version.clone()))?;
        resources.iter().find(|resource| resource.kind == kind.kind)
    });
    let params = params.map_or_else(DeclType::dynamic, |resource| rules::of_object(&resource.schema));
    let declared = Declared { params: param_kind.is_some(), authorizer: true, patches: false };
    let environments: Vec<(GroupVersionKind, Env)> = kinds
        .into_iter()
        .map(|(kind, object)| {
            let base = expressions::typed_environment(declared, object, params.clone());
            (kind, with_variables(base, spec))
        })
        .collect();
    let mut found = Vec::new();
    let validations = spec["validations"].as_array().into_iter().flatten();
    for (index, validation) in validations.enumerate() {
        for field in ["expression", "messageExpression"] {
            let Some(expression) = validation[field].as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let issues: Vec<String> =
                environments.iter().filter_map(|(kind, env)| issue(env, expression, kind)).collect();
            if !issues.is_empty() {
                let path = format!("spec.validations[{index}].{field}");
                found.push(json!({"fieldRef": path, "warning": issues.join("\n")}));
            }
        }
    }
    found
}

fn with_variables(base: Env, spec: &Value) -> Env {
    let mut known: Vec<(&str, Option<Program>)> = Vec::new();
    let mut env = base.clone();
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default();
        let program = env.compile(variable["expression"].as_str().unwrap_or_default()).ok();
        env = env.with_result(&expressions::variable_name(name), program.as_ref().map(Program::output));
        known.push((name, program));
    }
    expressions::with_variables(base, known.iter().map(|(name, program)| (*name, program.as_ref())))
}

/// What is wrong with an expression about objects of a kind.
fn issue(env: &Env, expression: &str, kind: &GroupVersionKind) -> Option<String> {
    match env.compile(expression) {
        Ok(_) => None,
        Err(CompileError::Issues(issues)) => Some(format!("{kind}: {issues}\n")),
        // Types are right; that the program cannot run was found when the policy was stored.
        Err(CompileError::Program(_)) => None,
    }
}

fn kind_of(resource: &Resource) -> GroupVersionKind {
    GroupVersionKind::new(resource.group.as_str(), resource.version.as_str(), resource.kind.as_str())
}

/// The resources that a policy names, by group, version and kind. Rules with wildcards are left out, as upstream.
fn resources<'a>(spec: &Value, registry: &'a Registry) -> Vec<&'a Resource> {
    let mut found: Vec<&Resource> = Vec::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let sorted = |key: &str| -> BTreeSet<&str> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (sorted("apiGroups"), sorted("apiVersions"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let names: Vec<&str> = sorted("resources").into_iter().filter(|n| !n.contains(['*', '/'])).collect();
        for group in &groups {
            for version in &versions {
                for name in &names {
                    let Some(resource) = registry.find(group, version, name) else { continue };
                    let known = found.iter().any(|known| kind_of(known) == kind_of(resource));
                    if !known && found.len() < MAX_KINDS {
                        found.push(resource);
                    }
                }
            }
        }
    }
    found.sort_by_key(|resource| kind_of(resource));
    found
}
