//! `matchConditions`: CEL expressions that must all be true for a webhook to be called or a policy to be evaluated.

use capstan_builtin::expressions::{self, Declared, Output};
use capstan_cel::limits::RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS;
use capstan_cel::{Budget, EvalError, Program};
use serde_json::Value;

use super::policy::{RequestBudget, Subject, Weight};

pub(super) struct Conditions {
    compiled: Vec<Condition>,
    ignore_failure: bool,
}

struct Condition {
    expression: String,
    program: Result<Program, String>,
}

impl Conditions {
    /// `params` is whether the owner is a policy with parameters.
    pub(super) fn compile(conditions: &[Value], params: bool, ignore_failure: bool) -> Self {
        if conditions.is_empty() {
            return Self { compiled: Vec::new(), ignore_failure };
        }
        let env = expressions::environment(Declared { params, authorizer: true, patches: false });
        let compile = |condition: &Value| {
            let expression = condition["expression"].as_str().unwrap_or_default().to_owned();
            let program = expressions::compile(&env, &expression, Output::Bool);
            Condition { expression, program: program.map_err(|error| error.to_string()) }
        };
        Self { compiled: conditions.iter().map(compile).collect(), ignore_failure }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Whether all conditions are true. A false one decides, whatever else fails. An error counts as not matching if
    /// failures are ignored, and rejects the request otherwise.
    pub(super) fn hold(&self, subject: &Subject<'_>, request: &mut RequestBudget) -> Result<bool, String> {
        if self.is_empty() {
            return Ok(true);
        }
        let programs = self.compiled.iter().filter_map(|condition| condition.program.as_ref().ok());
        let weight = programs.map(Weight::of).max().unwrap_or(Weight::Light);
        let most = RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS;
        request.spend(most, weight, |budget| self.all_true(subject, budget))
    }

    fn all_true(&self, subject: &Subject<'_>, budget: &mut Budget) -> Result<bool, String> {
        let variables = subject.activation(true);
        let mut errors = Vec::new();
        for Condition { expression, program } in &self.compiled {
            let outcome = match program {
                Ok(program) => program.evaluate(&variables, budget),
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            match outcome {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(EvalError::BudgetExceeded) => {
                    errors = vec![super::policy::OUT_OF_BUDGET.into()];
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
