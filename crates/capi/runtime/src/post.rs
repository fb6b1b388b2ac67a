//! One request to an extension server.

use std::time::Duration;

use capstan_capi_types::runtime::ClientConfig;
use futures::future::BoxFuture;
use serde_json::Value;

/// Posts requests over HTTPS.
pub trait Post: Send + Sync {
    /// Posts a request to a path of a server. The response is a JSON object, bounded in size; the call takes no
    /// longer than `timeout`.
    fn post<'a>(
        &'a self,
        server: &'a ClientConfig,
        path: &'a str,
        request: &'a Value,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Value, PostError>>;
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The call cannot be made with this configuration.
    #[error("{0}")]
    Misconfigured(String),
    /// The call was made, or tried, and failed.
    #[error("{0}")]
    Failed(String),
}
