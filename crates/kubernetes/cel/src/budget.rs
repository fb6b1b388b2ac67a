//! The cost one object's rules may reach together.

use crate::error::EvalError;
use crate::limits::{PER_CALL_LIMIT, RUNTIME_CEL_COST_BUDGET};

/// What is left to spend, and the limit of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    remaining: i64,
    per_call: u64,
    last: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(RUNTIME_CEL_COST_BUDGET)
    }
}

impl Budget {
    /// A budget of `total` with the usual limit for one call.
    #[must_use]
    pub fn new(total: i64) -> Self {
        Self { remaining: total, per_call: PER_CALL_LIMIT, last: 0 }
    }

    /// The same budget with another limit for one call.
    #[must_use]
    pub fn with_per_call_limit(mut self, limit: u64) -> Self {
        self.per_call = limit;
        self
    }

    /// What is left.
    #[must_use]
    pub fn remaining(&self) -> i64 {
        self.remaining
    }

    /// What the last call cost.
    #[must_use]
    pub fn last_cost(&self) -> u64 {
        self.last
    }

    pub(crate) fn per_call_limit(&self) -> u64 {
        self.per_call
    }

    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
        self.last = cost;
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.remaining => {
                self.remaining -= cost;
                Ok(())
            }
            _ => Err(EvalError::BudgetExceeded),
        }
    }
}
