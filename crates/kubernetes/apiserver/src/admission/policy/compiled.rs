//! Policies and bindings, decoded and compiled.

use capstan_builtin::expressions::{self, Declared, Output};
use capstan_cel::{Env, Program};
use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use super::evaluation::Weight;
use super::matching::MatchResources;
use crate::admission::GroupVersionKind;
use crate::admission::conditions::Conditions;

/// An expression, compiled or not. What does not compile fails where it is used.
pub(super) struct Expression {
    pub(super) text: String,
    pub(super) program: Result<Program, String>,
}

impl Expression {
    fn compile(env: &Env, text: &str, output: Output) -> Self {
        let program = expressions::compile(env, text, output).map_err(|error| error.to_string());
        Self { text: text.to_owned(), program }
    }
}

pub(super) struct Variable {
    pub(super) name: String,
    pub(super) expression: Expression,
}

/// A policy; `R` is what its kind adds.
pub(super) struct Policy<R> {
    pub(super) name: String,
    /// Identifies a state of the object.
    pub(super) version: (String, String),
    pub(super) constraints: MatchResources,
    /// Whether failures do not reject the request.
    pub(super) ignore_failure: bool,
    pub(super) param_kind: Option<GroupVersionKind>,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<Variable>,
    /// Of all expressions but the conditions.
    pub(super) weight: Weight,
    pub(super) rules: R,
}

/// What a kind of policy adds.
pub(super) trait PolicyRules: Sized + Send + Sync {
    fn compile(spec: &Value, environments: &Environments) -> Self;

    fn expressions(&self) -> Vec<&Expression>;
}

/// Environments with the variables of a policy.
pub(super) struct Environments {
    /// Of most expressions.
    full: Env,
    /// Of message expressions, which may not ask the authorizer.
    messages: Env,
    /// Of mutations.
    patches: Env,
}

/// Validations and audit annotations of a ValidatingAdmissionPolicy.
pub(super) struct Validations {
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
}

pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Option<String>,
}

pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) expression: Expression,
}

/// Mutations of a MutatingAdmissionPolicy.
pub(super) struct Mutations {
    pub(super) mutations: Vec<Mutation>,
    /// Whether it runs again when something later changes the object.
    pub(super) reinvoke: bool,
}

pub(super) enum Mutation {
    Apply(Expression),
    JsonPatch(Expression),
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The state of an object.
pub(super) fn version(object: &Value) -> (String, String) {
    let metadata = &object["metadata"];
    (text(metadata, "uid").to_owned(), text(metadata, "resourceVersion").to_owned())
}

impl<R: PolicyRules> Policy<R> {
    pub(super) fn compile(object: &Value) -> Self {
        let spec = &object["spec"];
        let params = !spec["paramKind"].is_null();
        let ignore_failure = text(spec, "failurePolicy") == "Ignore";
        let (variables, environments) = variables(spec, params);
        let rules = R::compile(spec, &environments);
        let of_variables = variables.iter().map(|variable| &variable.expression);
        let programs = of_variables.chain(rules.expressions()).filter_map(|e| e.program.as_ref().ok());
        let weight = programs.map(Weight::of).max().unwrap_or(Weight::Light);
        Self {
            name: text(&object["metadata"], "name").to_owned(),
            version: version(object),
            constraints: MatchResources::from_json(&spec["matchConstraints"]),
            ignore_failure,
            param_kind: params.then(|| GroupVersionKind::of(&spec["paramKind"])),
            conditions: Conditions::compile(list(spec, "matchConditions"), params, ignore_failure),
            variables,
            weight,
            rules,
        }
    }
}

fn variables(spec: &Value, params: bool) -> (Vec<Variable>, Environments) {
    let base = |authorizer, patches| expressions::environment(Declared { params, authorizer, patches });
    let mut compiled: Vec<Variable> = Vec::new();
    // Declared one after the other: a variable sees those before it.
    let mut env = base(true, false);
    for variable in list(spec, "variables") {
        let expression = Expression::compile(&env, text(variable, "expression"), Output::Any);
        let name = text(variable, "name").to_owned();
        let output = expression.program.as_ref().ok().map(Program::output);
        env = env.with_result(&expressions::variable_name(&name), output);
        compiled.push(Variable { name, expression });
    }
    let known = || compiled.iter().map(|v| (v.name.as_str(), v.expression.program.as_ref().ok()));
    let environments = Environments {
        full: expressions::with_variables(base(true, false), known()),
        messages: expressions::with_variables(base(false, false), known()),
        patches: expressions::with_variables(base(true, true), known()),
    };
    (compiled, environments)
}

impl PolicyRules for Validations {
    fn compile(spec: &Value, environments: &Environments) -> Self {
        let validation = |item: &Value| Validation {
            expression: Expression::compile(&environments.full, text(item, "expression"), Output::Bool),
            message: text(item, "message").trim().to_owned(),
            message_expression: Some(text(item, "messageExpression"))
                .filter(|expression| !expression.is_empty())
                .map(|expression| Expression::compile(&environments.messages, expression, Output::Text)),
            reason: item["reason"].as_str().map(str::to_owned),
        };
        let annotation = |item: &Value| Annotation {
            key: text(item, "key").to_owned(),
            expression: Expression::compile(
                &environments.full,
                text(item, "valueExpression").trim(),
                Output::TextOrNull,
            ),
        };
        Self {
            validations: list(spec, "validations").iter().map(validation).collect(),
            annotations: list(spec, "auditAnnotations").iter().map(annotation).collect(),
        }
    }

    fn expressions(&self) -> Vec<&Expression> {
        let validations = self.validations.iter();
        let validations = validations.flat_map(|v| [Some(&v.expression), v.message_expression.as_ref()]);
        validations.flatten().chain(self.annotations.iter().map(|a| &a.expression)).collect()
    }
}

impl PolicyRules for Mutations {
    fn compile(spec: &Value, environments: &Environments) -> Self {
        let env = &environments.patches;
        let mutation = |item: &Value| match text(item, "patchType") {
            "JSONPatch" => {
                let expression = text(&item["jsonPatch"], "expression").trim();
                Mutation::JsonPatch(Expression::compile(env, expression, Output::JsonPatches))
            }
            _ => {
                let expression = text(&item["applyConfiguration"], "expression").trim();
                Mutation::Apply(Expression::compile(env, expression, Output::Object))
            }
        };
        Self {
            mutations: list(spec, "mutations").iter().map(mutation).collect(),
            reinvoke: text(spec, "reinvocationPolicy") == "IfNeeded",
        }
    }

    fn expressions(&self) -> Vec<&Expression> {
        let expressions = self.mutations.iter().map(|mutation| match mutation {
            Mutation::Apply(expression) | Mutation::JsonPatch(expression) => expression,
        });
        expressions.collect()
    }
}

pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) param_ref: Option<ParamRef>,
    /// None selects everything that the policy does.
    pub(super) resources: Option<MatchResources>,
    /// `Deny`, `Warn`, `Audit`.
    pub(super) actions: Vec<String>,
}

/// Which parameters a binding uses.
pub(super) struct ParamRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) selector: Option<Result<LabelSelector, String>>,
    /// Whether missing parameters reject the request.
    pub(super) deny_if_missing: bool,
}

impl Binding {
    pub(super) fn from_json(object: &Value) -> Self {
        let spec = &object["spec"];
        let param_ref = &spec["paramRef"];
        Self {
            name: text(&object["metadata"], "name").to_owned(),
            policy: text(spec, "policyName").to_owned(),
            param_ref: param_ref.is_object().then(|| ParamRef {
                name: text(param_ref, "name").to_owned(),
                namespace: text(param_ref, "namespace").to_owned(),
                selector: param_ref
                    .get("selector")
                    .filter(|selector| selector.is_object())
                    .map(|selector| LabelSelector::from_object(selector).map_err(|error| error.to_string())),
                deny_if_missing: text(param_ref, "parameterNotFoundAction") == "Deny",
            }),
            resources: spec
                .get("matchResources")
                .filter(|resources| resources.is_object())
                .map(MatchResources::from_json),
            actions: list(spec, "validationActions")
                .iter()
                .filter_map(|action| action.as_str().map(str::to_owned))
                .collect(),
        }
    }
}
