/// The request was sent or not; no answer came.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    pub message: String,
    /// The request certainly never reached the server.
    pub never_sent: bool,
    /// The headers of the answer were longer than is read.
    pub headers_too_long: bool,
}

impl TransportError {
    /// An error after which nobody knows whether the request was served.
    pub fn ambiguous(message: impl Into<String>) -> Self {
        Self { message: message.into(), never_sent: false, headers_too_long: false }
    }

    /// An error before the request was sent.
    pub fn never_sent(message: impl Into<String>) -> Self {
        Self { never_sent: true, ..Self::ambiguous(message) }
    }
}
