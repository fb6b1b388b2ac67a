//! The cost budget that all rules of one object share.

use crate::error::EvalError;
use crate::limits::{PER_CALL_LIMIT, RUNTIME_CEL_COST_BUDGET};

/// The remaining budget and the limit of one call. Shared by consecutive evaluations.
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
    /// A budget of `total` with the default limit of one call, [`crate::limits::PER_CALL_LIMIT`].
    #[must_use]
    pub fn new(total: i64) -> Self {
        Self { remaining: total, per_call: PER_CALL_LIMIT, last: 0 }
    }

    /// Sets another limit of one call.
    #[must_use]
    pub fn with_per_call_limit(mut self, limit: u64) -> Self {
        self.per_call = limit;
        self
    }

    /// The remaining budget. Negative once it is exceeded.
    #[must_use]
    pub fn remaining(&self) -> i64 {
        self.remaining
    }

    /// Cost of the last evaluation.
    #[must_use]
    pub fn last_cost(&self) -> u64 {
        self.last
    }

    pub(crate) fn per_call_limit(&self) -> u64 {
        self.per_call
    }

    /// Charges a cost.
    ///
    /// # Errors
    /// [`EvalError::BudgetExceeded`] if it is more than what remains.
    pub fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
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
