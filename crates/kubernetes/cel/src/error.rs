//! Errors, with cel-go's texts.

use std::sync::Arc;

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text does not parse or does not type-check. Displays as cel-go's issue list:
    /// `ERROR: <input>:1:6: …` with the source line and a caret for each issue.
    #[error("{0}")]
    Issues(String),
    /// The checked expression cannot be planned, e.g. `int('x')` whose constant does not convert. Kubernetes
    /// reports these as `program instantiation failed: …`.
    #[error("{0}")]
    Program(String),
}

/// Why an evaluation failed. Displays as cel-go's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// An error of the expression or its data, e.g. `no such key: x`.
    #[error("{0}")]
    Runtime(Arc<str>),
    /// The call exceeded the cost limit of one call.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimitExceeded,
    /// The call cost more than the remaining budget.
    #[error("running out of cost budget")]
    BudgetExceeded,
}

impl EvalError {
    /// An error with this text.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self::Runtime(message.into())
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    pub(crate) fn no_such_key(key: impl std::fmt::Display) -> Self {
        Self::new(format!("no such key: {key}"))
    }

    /// Whether `||`, `&&` and quantifiers may absorb the error.
    pub(crate) fn is_absorbable(&self) -> bool {
        matches!(self, Self::Runtime(_))
    }
}
