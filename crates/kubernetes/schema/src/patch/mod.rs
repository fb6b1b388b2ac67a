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

/// Why a patch was not applied. [`PatchError::status`] says how the API server answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// The patch has more operations than allowed.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {got}")]
    TooManyOperations {
        /// The most operations allowed.
        limit: usize,
        /// The operations sent.
        got: usize,
    },
    /// The patch can be read but does not fit the object.
    #[error("{0}")]
    Inapplicable(String),
    /// The patch disagrees with the schema of the object in a way upstream answers as its own failure.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The HTTP status the API server answers with: 400, 413, 422 or 500. The message is the whole
    /// `Display` text; 413 is prefixed by `Request entity too large: ` as all of its kind, and 422 hides
    /// it behind `the server rejected our request due to an error in our request`, with empty details.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooManyOperations { .. } => 413,
            Self::Inapplicable(_) => 422,
            Self::Internal(_) => 500,
        }
    }
}

/// Deepest nesting of an object: what the JSON reader itself accepts, so that whatever is stored can be
/// read again and no walk recurses without bound.
pub const MAX_DEPTH: usize = 127;

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
