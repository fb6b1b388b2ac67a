//! Evaluates the expressions of a policy about one request with one parameter.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use capstan_builtin::expressions::types;
use capstan_cel::limits::RUNTIME_CEL_COST_BUDGET;
use capstan_cel::{
    Activation, Budget, ComputedVariables, EvalError, Program, Value as CelValue, run_with_stack,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::access::RequestAuthorizer;
use super::compiled::{Expression, Variable};
use crate::blocking;

/// Upstream's text for a policy whose expressions cost too much together.
pub(in crate::admission) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Variables that refer to each other in a chain of this length get a larger stack.
const DEEP_CHAIN: usize = 16;

/// What expressions see: one request in one version, with one parameter.
pub(in crate::admission) struct Subject<'a> {
    pub(in crate::admission) object: &'a Value,
    pub(in crate::admission) old_object: &'a Value,
    /// The AdmissionRequest without its objects.
    pub(in crate::admission) request: &'a Value,
    /// Null without parameters.
    pub(in crate::admission) params: &'a Value,
    /// Null for cluster-scoped objects.
    pub(in crate::admission) namespace: &'a Value,
    pub(in crate::admission) authorizer: RequestAuthorizer,
}

impl<'a> Subject<'a> {
    /// As upstream, values are untyped at run time, whatever their declared types are.
    pub(in crate::admission) fn activation(&self, with_authorizer: bool) -> Activation<'a> {
        let any = &types().any;
        let activation = Activation::new()
            .bind("object", self.object, any)
            .bind("oldObject", self.old_object, any)
            .bind("request", self.request, any)
            .bind("params", self.params, any)
            .bind("namespaceObject", self.namespace, any);
        if !with_authorizer {
            return activation;
        }
        activation
            .bind_value("authorizer", self.authorizer.value())
            .bind_value("authorizer.requestResource", self.authorizer.request_resource())
    }
}

/// Cost of all expressions about one request. Upstream bounds each policy with each parameter; together they could
/// keep a thread busy for minutes.
const REQUEST_BUDGET: i64 = 10 * RUNTIME_CEL_COST_BUDGET;

/// A thread needs about a millisecond for it.
const LIGHT_COST: u64 = 10_000;

/// How long expressions may keep a thread busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admission) enum Weight {
    /// At most about a millisecond, whatever the object is.
    Light,
    /// Depends on the object: up to seconds. Other requests must not wait for it.
    Heavy,
}

impl Weight {
    pub(in crate::admission) fn of(program: &Program) -> Self {
        if program.cost_estimate().max > LIGHT_COST { Self::Heavy } else { Self::Light }
    }
}

/// What is left for the expressions about one request.
pub(in crate::admission) struct RequestBudget(i64);

impl RequestBudget {
    pub(in crate::admission) fn new() -> Self {
        Self(REQUEST_BUDGET)
    }

    /// Runs with a budget of its own, or with what is left if that is less.
    pub(in crate::admission) fn spend<T>(
        &mut self,
        most: i64,
        weight: Weight,
        run: impl FnOnce(&mut Budget) -> T,
    ) -> T {
        let granted = most.min(self.0);
        let mut budget = Budget::new(granted);
        let result = match weight {
            Weight::Light => run(&mut budget),
            Weight::Heavy => blocking::run(|| run(&mut budget)),
        };
        self.0 = (self.0 - (granted - budget.remaining())).max(0);
        result
    }
}

/// The budget of all expressions is spent.
#[derive(Debug)]
pub(super) struct OutOfBudget;

/// Evaluates expressions that share the values of the policy's variables.
pub(super) struct Evaluation<'a> {
    activation: Activation<'a>,
    variables: &'a [Variable],
    values: Mutex<Vec<Option<Result<CelValue<'a>, EvalError>>>>,
    /// Cost of variables since it was last charged.
    cost: AtomicU64,
    /// Variables that are being computed.
    depth: AtomicUsize,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(activation: Activation<'a>, variables: &'a [Variable]) -> Self {
        Self {
            activation,
            variables,
            values: Mutex::new(vec![None; variables.len()]),
            cost: AtomicU64::new(0),
            depth: AtomicUsize::new(0),
        }
    }

    /// The value of an expression, or upstream's text of its error.
    pub(super) fn run(
        &self,
        expression: &Expression,
        budget: &mut Budget,
    ) -> Result<Result<CelValue<'a>, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(format!("compilation error: {error}"))),
        };
        let outcome = program.evaluate_with(&self.activation, self, budget);
        budget.spend(self.cost.swap(0, Ordering::Relaxed)).map_err(|_| OutOfBudget)?;
        match outcome {
            Ok(value) => Ok(Ok(value)),
            Err(EvalError::BudgetExceeded) => Err(OutOfBudget),
            Err(error) => Ok(Err(format!("expression '{}' resulted in error: {error}", expression.text))),
        }
    }

    fn variable(&self, index: usize) -> Result<CelValue<'a>, EvalError> {
        if let Some(known) = &self.values.lock()[index] {
            return known.clone();
        }
        let Variable { name, expression } = &self.variables[index];
        let value = match &expression.program {
            Err(error) => {
                Err(EvalError::new(format!("composited variable {name:?} fails to compile: {error}")))
            }
            Ok(program) => {
                // Only the limit of one call applies here; the cost is charged with the expression.
                let mut budget = Budget::new(i64::MAX);
                let depth = self.depth.fetch_add(1, Ordering::Relaxed);
                let outcome = run_with_stack(depth == DEEP_CHAIN, || {
                    program.evaluate_with(&self.activation, self, &mut budget)
                });
                self.depth.fetch_sub(1, Ordering::Relaxed);
                self.cost.fetch_add(budget.last_cost(), Ordering::Relaxed);
                let outcome = outcome.unwrap_or_else(|error| Err(EvalError::new(error.to_string())));
                outcome.map_err(|error| {
                    EvalError::new(format!("composited variable {name:?} fails to evaluate: {error}"))
                })
            }
        };
        self.values.lock()[index] = Some(value.clone());
        value
    }
}

impl<'a> ComputedVariables<'a> for Evaluation<'a> {
    fn compute(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        if name == "variables" {
            let all = self.variables.iter().enumerate();
            let all = all.map(|(index, variable)| Ok((variable.name.as_str(), self.variable(index)?)));
            return Some(all.collect::<Result<Vec<_>, _>>().map(CelValue::map));
        }
        let name = name.strip_prefix("variables.")?;
        // A later variable of the same name replaces an earlier one, as upstream.
        let index = self.variables.iter().rposition(|variable| variable.name == name)?;
        Some(self.variable(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_share_what_is_left_for_a_request() {
        let mut request = RequestBudget::new();
        let mut spend =
            |cost| request.spend(RUNTIME_CEL_COST_BUDGET, Weight::Light, |budget| budget.spend(cost)).is_ok();
        for _ in 0..9 {
            assert!(spend(10_000_000));
        }
        assert!(spend(9_999_999));
        assert!(spend(1));
        assert!(!spend(1));
    }

    #[test]
    fn heavy_expressions_do_not_keep_other_tasks_waiting() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let evaluation = async {
            let (sender, other_task) = std::sync::mpsc::channel();
            RequestBudget::new().spend(RUNTIME_CEL_COST_BUDGET, Weight::Heavy, |_| {
                // The only worker is busy with this; another task runs nevertheless.
                tokio::spawn(async move { sender.send(()) });
                other_task.recv_timeout(std::time::Duration::from_secs(30)).is_ok()
            })
        };
        assert!(runtime.block_on(runtime.spawn(evaluation)).expect("no panic"));
    }

    #[tokio::test]
    async fn one_thread_evaluates_heavy_expressions_itself() {
        let spent = RequestBudget::new().spend(5, Weight::Heavy, |budget| budget.spend(1));
        assert!(spent.is_ok());
    }
}
