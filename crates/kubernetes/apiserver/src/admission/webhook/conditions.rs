//! `matchConditions`: CEL expressions that must all be true for a webhook to be called.

use std::sync::LazyLock;

use capstan_cel::{Activation, Budget, DeclType, Env, EvalError, Field, Program};
use serde_json::Value;

/// Cost budget of all conditions of one webhook.
const BUDGET: i64 = 2_500_000;
/// Cost limit of one condition.
const PER_CALL: u64 = 1_000_000;

pub(super) struct Conditions {
    compiled: Vec<Condition>,
    ignore_failure: bool,
}

struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// Variables of the conditions.
pub(super) struct Input<'a> {
    pub(super) object: &'a Value,
    pub(super) old_object: &'a Value,
    /// The AdmissionRequest without its objects.
    pub(super) request: &'a Value,
}

impl Conditions {
    pub(super) fn compile(conditions: &[Value], ignore_failure: bool) -> Self {
        let compile = |condition: &Value| {
            let expression = condition["expression"].as_str().unwrap_or_default().to_owned();
            let program = ENVIRONMENT.env.compile(&expression).map_err(|error| error.to_string());
            Condition { expression, program }
        };
        Self { compiled: conditions.iter().map(compile).collect(), ignore_failure }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Whether all conditions are true. A false one decides, whatever else fails. An error counts as not matching if
    /// failures are ignored, and rejects the request otherwise.
    pub(super) fn hold(&self, input: &Input<'_>) -> Result<bool, String> {
        let Environment { any, request, .. } = &*ENVIRONMENT;
        let variables = Activation::new()
            .bind("object", input.object, any)
            .bind("oldObject", input.old_object, any)
            .bind("request", input.request, request);
        let mut budget = Budget::new(BUDGET).with_per_call_limit(PER_CALL);
        let mut errors = Vec::new();
        for Condition { expression, program } in &self.compiled {
            let outcome = match program {
                Ok(program) => program.evaluate(&variables, &mut budget),
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            match outcome {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(EvalError::BudgetExceeded) => {
                    errors = vec![
                        "validation failed due to running out of cost budget, no further validation rules will be run".into(),
                    ];
                    break;
                }
                Err(error) => errors.push(format!("expression '{expression}' resulted in error: {error}")),
            }
        }
        match (errors.is_empty(), self.ignore_failure) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => Err(crate::auth::aggregate_text(errors.into_iter().collect())),
        }
    }
}

struct Environment {
    env: Env,
    any: DeclType,
    request: DeclType,
}

/// The variables of conditions. `authorizer` is not supported: an expression that uses it does not compile.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = |name: &str| Field::new(name, DeclType::string());
    let named = |name: &str, fields: Vec<Field>| DeclType::object(fields).named(name);
    let kind = || named("kubernetes.GroupVersionKind", vec![text("group"), text("version"), text("kind")]);
    let resource =
        || named("kubernetes.GroupVersionResource", vec![text("group"), text("version"), text("resource")]);
    let texts = || DeclType::list(DeclType::string());
    let user = named(
        "kubernetes.UserInfo",
        vec![
            text("username"),
            text("uid"),
            Field::new("groups", texts()),
            Field::new("extra", DeclType::map(texts())),
        ],
    );
    let request = named(
        "kubernetes.AdmissionRequest",
        vec![
            Field::new("kind", kind()),
            Field::new("resource", resource()),
            text("subResource"),
            Field::new("requestKind", kind()),
            Field::new("requestResource", resource()),
            text("requestSubResource"),
            text("name"),
            text("namespace"),
            text("operation"),
            Field::new("userInfo", user),
            Field::new("dryRun", DeclType::boolean()),
            Field::new("options", DeclType::dynamic()),
        ],
    );
    let any = DeclType::dynamic();
    let env = Env::kubernetes()
        .with_variable("object", any.clone())
        .with_variable("oldObject", any.clone())
        .with_variable("request", request.clone());
    Environment { env, any, request }
});
