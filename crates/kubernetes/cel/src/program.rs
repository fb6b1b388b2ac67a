//! Compiled expressions and the values of their variables.

use serde_json::Value as Json;

use crate::budget::Budget;
use crate::check::Checked;
use crate::cost::CostRange;
use crate::decl::DeclType;
use crate::error::EvalError;
use crate::eval::{self, Meter, Plan};
use crate::stack;
use crate::types::Type;
use crate::value::Value;

/// Nesting for which the current thread's stack is sufficient.
const SHALLOW: usize = 64;

/// A compiled expression. It can be evaluated repeatedly, from any thread.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    output: Type,
    estimate: CostRange,
    depth: usize,
    variables: Vec<String>,
}

/// Values of variables for one or more evaluations.
#[derive(Debug, Clone, Default)]
pub struct Activation<'a> {
    values: Vec<(&'a str, Result<Value<'a>, EvalError>)>,
}

impl<'a> Activation<'a> {
    /// An activation without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable to JSON, read through its declared type. If the data does not match the type, expressions
    /// that use the variable fail.
    #[must_use]
    pub fn bind(self, name: &'a str, json: &'a Json, decl: &'a DeclType) -> Self {
        let value = Value::from_json(json, decl);
        self.with(name, value)
    }

    /// Binds an optional variable, declared with [`DeclType::optional`] of `decl`.
    #[must_use]
    pub fn bind_optional(self, name: &'a str, json: Option<&'a Json>, decl: &'a DeclType) -> Self {
        let value = match json {
            Some(json) => Value::from_json(json, decl).map(Value::some),
            None => Ok(Value::Optional(None)),
        };
        self.with(name, value)
    }

    /// Binds a variable to a value.
    #[must_use]
    pub fn bind_value(self, name: &'a str, value: Value<'a>) -> Self {
        self.with(name, Ok(value))
    }

    fn with(mut self, name: &'a str, value: Result<Value<'a>, EvalError>) -> Self {
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, value));
        self
    }
}

/// Variables whose values are computed when an expression uses them.
pub trait ComputedVariables<'a>: Sync {
    /// The value of a variable, or `None` if there is no such variable.
    fn compute(&self, name: &str) -> Option<Result<Value<'a>, EvalError>>;
}

impl Program {
    pub(crate) fn new(plan: Plan, checked: &Checked, estimate: CostRange, depth: usize) -> Self {
        Self {
            output: checked.type_of(checked.ast.root).clone(),
            variables: checked.variables(),
            plan,
            estimate,
            depth,
        }
    }

    /// The static type of the result.
    #[must_use]
    pub fn output(&self) -> &Type {
        &self.output
    }

    /// The cost estimate, from the bounds of the declared types.
    #[must_use]
    pub fn cost_estimate(&self) -> CostRange {
        self.estimate
    }

    /// Whether the expression uses a variable of that name.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.iter().any(|used| used == variable)
    }

    /// Evaluates the expression and charges its cost to the budget.
    ///
    /// # Errors
    /// If the expression fails, if it exceeds the limit of one call ([`EvalError::CostLimitExceeded`]), or if it
    /// costs more than the remaining budget ([`EvalError::BudgetExceeded`], whatever else happened).
    pub fn evaluate<'a>(
        &self,
        variables: &Activation<'a>,
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        self.run(variables, None, budget)
    }

    /// Like [`Program::evaluate`]. Variables that are not bound are computed when they are used; what that costs is
    /// not charged here.
    ///
    /// # Errors
    /// As [`Program::evaluate`].
    pub fn evaluate_with<'a>(
        &self,
        variables: &Activation<'a>,
        computed: &dyn ComputedVariables<'a>,
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        self.run(variables, Some(computed), budget)
    }

    fn run<'a>(
        &self,
        variables: &Activation<'a>,
        computed: Option<&dyn ComputedVariables<'a>>,
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        let mut meter = Meter::new(budget.per_call_limit());
        let values: Vec<Option<Result<Value<'a>, EvalError>>> = self
            .plan
            .variables
            .iter()
            .map(|name| {
                let found = variables.values.iter().find(|(known, _)| *known == &**name);
                found.map(|(_, value)| value.clone())
            })
            .collect();
        let result =
            stack::run(self.depth > SHALLOW, || eval::run(&self.plan, &values, computed, &mut meter))
                .unwrap_or_else(|error| Err(EvalError::new(error.to_string())));
        budget.spend(meter.cost())?;
        result
    }
}
