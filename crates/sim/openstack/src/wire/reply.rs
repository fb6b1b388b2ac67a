//! What goes back.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

/// An answer of a service.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Empty,
    Json(Value),
    Text(&'static str, String),
    Bytes(Bytes),
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Body::Json(body) }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Empty }
    }

    /// No content, but a type.
    pub(crate) fn nothing(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Text("application/json", String::new()) }
    }

    /// No content, with the type that the services' web framework sets by itself.
    pub(crate) fn html(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Text("text/html; charset=UTF-8", String::new()) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As HTTP; a HEAD request gets no body.
    pub(crate) fn render(self, head: bool) -> Response<Bytes> {
        let (kind, bytes) = match self.body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
            Body::Text(kind, text) => (Some(kind), Bytes::from(text)),
            Body::Bytes(bytes) => (Some("application/octet-stream"), bytes),
        };
        let mut response = Response::new(if head { Bytes::new() } else { bytes });
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(kind) = kind {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

/// Why a service refuses. Each service writes it in its own shape.
#[derive(Debug, Clone)]
pub(crate) struct Fail {
    pub(crate) status: u16,
    /// Exception class (Neutron) or another word that the service's shape needs.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The whole reply, where it does not have the service's shape.
    pub(crate) reply: Option<Box<Reply>>,
}

impl Fail {
    pub(crate) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), headers: Vec::new(), reply: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "", message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(404, "", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "", message)
    }

    pub(crate) fn reply(reply: Reply) -> Self {
        Self { reply: Some(Box::new(reply.clone())), ..Self::new(reply.status, "", "") }
    }
}
