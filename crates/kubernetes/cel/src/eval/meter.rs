//! Resource usage of an evaluation.

use std::sync::Arc;

use regex::Regex;

use crate::error::EvalError;
use crate::limits::MAX_ALLOCATED_BYTES;

/// Elements that an evaluation may visit per unit of its cost limit. Cost bounds most work, but not all: some
/// functions have a constant cost for any list, and lists can share parts. A comparison costs a tenth per element, so
/// ten elements per unit are normal.
const WORK_PER_COST: u64 = 12;

/// Cost, memory and work of one evaluation.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: u64,
    limit: u64,
    allocated: usize,
    worked: u64,
    last_regex: Option<(String, Arc<Regex>)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, allocated: 0, worked: 0, last_regex: None }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    /// Refunds a unit charged for a step that costs nothing, e.g. `has`.
    pub(crate) fn refund(&mut self) {
        self.cost = self.cost.saturating_sub(1);
    }

    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.allocated = self.allocated.saturating_add(bytes);
        if self.allocated > MAX_ALLOCATED_BYTES { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    pub(crate) fn work(&mut self, elements: u64) -> Result<(), EvalError> {
        self.worked = self.worked.saturating_add(elements);
        if self.worked / WORK_PER_COST > self.limit { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    pub(crate) fn cached_regex(&self, pattern: &str) -> Option<Arc<Regex>> {
        self.last_regex.as_ref().filter(|(known, _)| known == pattern).map(|(_, regex)| regex.clone())
    }

    pub(crate) fn cache_regex(&mut self, pattern: &str, regex: &Arc<Regex>) {
        self.last_regex = Some((pattern.to_owned(), regex.clone()));
    }
}
