//! The three patch formats that need no field ownership: JSON patch (RFC 6902), JSON merge patch
//! (RFC 7396) and strategic merge patch. All work on versioned JSON objects; decoding, defaulting and
//! pruning of the result are the caller's.
//!
//! ```text
//! application/json-patch+json             json::Patch::decode → apply
//! application/merge-patch+json            merge::apply
//! application/strategic-merge-patch+json  strategic::apply   (built-in kinds only)
//! application/apply-patch+yaml            crate::apply
//! ```

pub(crate) mod go;
pub mod json;
pub mod merge;
pub mod strategic;

use serde_json::Value;

/// Why a patch failed. [`PatchError::status`] is the status of the response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The patch has more operations than allowed.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {got}")]
    TooManyOperations {
        /// The most operations allowed.
        limit: usize,
        /// The number of operations in the patch.
        got: usize,
    },
    /// Applying the patch takes more work than allowed.
    #[error("applying the patch would {doing} more than {limit} values: send several smaller patches")]
    TooMuchWork {
        /// What is done with each value: `move` or `merge`.
        doing: &'static str,
        /// The most values allowed.
        limit: usize,
    },
    /// The patch is well-formed but cannot be applied to the object.
    #[error("{0}")]
    Inapplicable(String),
    /// The patch contradicts the schema of the object. Upstream reports this as an internal error.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// Whether a `test` operation did not hold.
    pub fn is_failed_test(&self) -> bool {
        matches!(self, Self::Inapplicable(why) if why.ends_with("failed: test failed"))
    }

    /// The HTTP status of the response: 400, 413, 422 or 500. The message is the complete `Display` text. 413 has the
    /// prefix `Request entity too large: `, and 422 replaces it by `the server rejected our request due to an error
    /// in our request`, with empty details.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooManyOperations { .. } | Self::TooMuchWork { .. } => 413,
            Self::Inapplicable(_) => 422,
            Self::Internal(_) => 500,
        }
    }
}

/// Nesting limit of an object: that of the JSON parser, so that every stored object can be read and no recursion is
/// unbounded.
pub const MAX_DEPTH: usize = 127;

/// Values in a value, with itself.
pub(crate) fn count(value: &Value) -> usize {
    let mut values = 1;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => {
                values += items.len();
                open.extend(items.iter().filter(|v| v.is_array() || v.is_object()));
            }
            Value::Object(map) => {
                values += map.len();
                open.extend(map.values().filter(|v| v.is_array() || v.is_object()));
            }
            _ => {}
        }
    }
    values
}

/// Nesting of a value: 0 for a scalar, 1 for a flat list or object. Does not recurse.
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => {
                deepest = deepest.max(level + 1);
                open.extend(items.iter().filter(|v| v.is_array() || v.is_object()).map(|v| (v, level + 1)));
            }
            Value::Object(map) => {
                deepest = deepest.max(level + 1);
                open.extend(map.values().filter(|v| v.is_array() || v.is_object()).map(|v| (v, level + 1)));
            }
            _ => {}
        }
    }
    deepest
}
