//! Costs of expressions: a static estimate from their types, and the actual cost of an evaluation.
//!
//! Both follow cel-go's rules with the additions of Kubernetes' libraries. The numbers are part of the API: they
//! decide which CRDs and which objects are accepted.

pub(crate) mod actual;
mod estimate;
mod library;
mod size;

pub(crate) use estimate::estimate;

/// Cost of traversing a string, per character.
pub(crate) const STRING_TRAVERSAL: f64 = 0.1;
/// The cost of a regular expression per character, per unit of the string it is applied to.
pub(crate) const REGEX_LENGTH: f64 = 0.25;

/// Cost of asking the authorizer: two questions fit into one expression.
pub(crate) const ACCESS_CHECK: u64 = 350_000;

/// Lower and upper bound of the cost of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostRange {
    /// If every branch and every size is the cheapest.
    pub min: u64,
    /// If every branch and every size is the most expensive. Limits apply to this.
    pub max: u64,
}

/// Functions of Kubernetes' libraries with a constant cost of 1.
const UNIT_COST: [&str; 27] = [
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];
