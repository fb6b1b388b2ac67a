//! The verbs of a resource.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod update;
pub(crate) mod watch;

use ::http::StatusCode;
use bytes::Bytes;
use serde_json::Value;

use crate::reply::Reply;

/// Result of a verb, before transformation and encoding.
pub(crate) enum Answer {
    /// One object in the version of the request.
    Object { code: StatusCode, bytes: Bytes },
    /// Several objects in the version of the request.
    List(ListAnswer),
    /// A `Status` or another kind without transformations.
    Plain { code: StatusCode, value: Value },
    /// A complete response.
    Reply(Reply),
}

pub(crate) struct ListAnswer {
    pub items: Vec<Bytes>,
    pub resource_version: u64,
    pub continue_token: String,
    pub remaining: Option<u64>,
}

impl Answer {
    pub fn object(code: StatusCode, value: &Value) -> Self {
        Self::Object { code, bytes: capstan_builtin::text::to_vec(value).into() }
    }
}
