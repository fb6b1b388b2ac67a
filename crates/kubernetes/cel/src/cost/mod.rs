//! What expressions cost: an estimate from their types, and what an evaluation really takes.
//!
//! Both follow cel-go's rules with the additions of Kubernetes' libraries. The numbers are part of the API:
//! they decide which CRDs are accepted and which objects are.

pub(crate) mod actual;
mod estimate;
mod library;
mod size;

pub(crate) use estimate::estimate;

/// The cost of going over a string, per character.
pub(crate) const STRING_TRAVERSAL: f64 = 0.1;
/// The cost of a regular expression per character, per unit of the string it is applied to.
pub(crate) const REGEX_LENGTH: f64 = 0.25;

/// The least and the most an expression can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostRange {
    /// If every branch and every size is the cheapest.
    pub min: u64,
    /// If every branch and every size is the dearest; this is what limits apply to.
    pub max: u64,
}

/// Functions of Kubernetes' libraries that cost one, whatever they are given.
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
