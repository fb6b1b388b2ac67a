//! The cost limits of CEL in Kubernetes. One cost unit is roughly 50 to 100 ns.

/// Runtime cost at which one evaluation is cancelled (upstream `PerCallLimit`).
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// Runtime cost budget of all rules of one object (upstream `RuntimeCELCostBudget`).
pub const RUNTIME_CEL_COST_BUDGET: i64 = 10_000_000;

/// Runtime cost of all match conditions of one webhook or policy binding
/// (upstream `RuntimeCELCostBudgetMatchConditions`).
pub const RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS: i64 = 2_500_000;

/// Estimated worst-case cost of one rule times its cardinality, above which a CRD is rejected (upstream
/// `StaticEstimatedCostLimit`).
pub const STATIC_ESTIMATED_COST_LIMIT: u64 = 10_000_000;

/// The same for all rules of a CRD version together (upstream `StaticEstimatedCRDCostLimit`).
pub const STATIC_ESTIMATED_CRD_COST_LIMIT: u64 = 100_000_000;

/// The request size, which bounds strings, lists and maps without a bound in their schema.
pub const MAX_REQUEST_SIZE_BYTES: i64 = 3 * 1024 * 1024;

/// The longest text a `messageExpression` may produce.
pub const MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES: usize = 5 * 1024;

/// Longest expression in code points.
pub(crate) const EXPRESSION_SIZE_CODE_POINT_LIMIT: usize = 100_000;

/// Nesting limit of each grammar rule in the parser.
pub(crate) const MAX_RECURSION_DEPTH: u32 = 250;

/// Limit of nodes in an expression after macro expansion. `optMap` copies its target, so a chain of them doubles the
/// tree at every link. cel-go has no limit here.
pub(crate) const MAX_NODES: usize = 400_000;

/// Limit of nodes in one deduced type: `{x: x}` in a chain of `map` calls doubles a type at every link.
pub(crate) const MAX_TYPE_SIZE: u32 = 10_000;

/// Limit of bytes of text that one evaluation produces. The cost of `replace` does not depend on the length of its
/// result, so cost alone does not bound memory.
pub(crate) const MAX_ALLOCATED_BYTES: usize = 64 * 1024 * 1024;
