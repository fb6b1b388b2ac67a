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

/// What a verb answers, before it is given the shape the client asked for.
pub(crate) enum Answer {
    /// One object in the version of the request.
    Object { code: StatusCode, bytes: Bytes },
    /// Several objects in the version of the request.
    List(ListAnswer),
    /// A `Status` or another kind that has no other shape.
    Plain { code: StatusCode, value: Value },
    /// Already a response.
    Reply(Reply),
}

/// The contents of a list.
pub(crate) struct ListAnswer {
    pub items: Vec<Bytes>,
    pub resource_version: u64,
    pub continue_token: String,
    pub remaining: Option<u64>,
}

impl Answer {
    pub fn object(code: StatusCode, value: &Value) -> Self {
        Self::Object { code, bytes: value.to_string().into() }
    }
}
