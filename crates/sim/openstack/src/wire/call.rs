//! A request as the services read it.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{Fail, Reply};
use crate::table::Object;

/// Who sent a request: what a valid token says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    pub(crate) user: String,
    /// Absent for unscoped and system-scoped tokens.
    pub(crate) project: Option<String>,
    pub(crate) roles: Vec<String>,
    /// Id of the application credential that the token came from.
    pub(crate) credential: Option<String>,
    pub(crate) restricted: bool,
}

impl Caller {
    pub(crate) fn is_admin(&self) -> bool {
        self.has("admin")
    }

    pub(crate) fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|held| held == role)
    }

    /// May change things in its project.
    pub(crate) fn is_member(&self) -> bool {
        self.has("member") || self.is_admin()
    }

    pub(crate) fn project(&self) -> &str {
        self.project.as_deref().unwrap_or_default()
    }
}

/// A request.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Decoded segments of the path, without empty ones.
    pub(crate) path: Vec<String>,
    /// The path as sent.
    pub(crate) raw_path: String,
    pub(crate) raw_query: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) caller: Caller,
    /// URL of the service, without a slash at the end.
    pub(crate) base: String,
    pub(crate) request_id: String,
    /// Microversion as (major, minor), for the services that have some.
    pub(crate) version: (u32, u32),
}

impl Call {
    pub(crate) fn new(request: Request<Bytes>, base: String, request_id: String) -> Self {
        let (head, body) = request.into_parts();
        let raw_path = head.uri.path().to_owned();
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let path = raw_path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let raw_query = head.uri.query().unwrap_or_default().to_owned();
        let query = raw_query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let plain = |text: &str| decode(&text.replace('+', " "));
                (plain(name), plain(value))
            })
            .collect();
        Self {
            method: head.method,
            path,
            raw_path,
            raw_query,
            query,
            headers: head.headers,
            body,
            caller: Caller::default(),
            base,
            request_id,
            version: (0, 0),
        }
    }

    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// First value of a query parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn params<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// The body, if it is JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The object under a key of the body.
    pub(crate) fn object(&self, key: &str) -> Option<Object> {
        match self.json()? {
            Value::Object(mut body) => match body.remove(key)? {
                Value::Object(object) => Some(object),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn at_least(&self, minor: u32) -> bool {
        self.version.1 >= minor
    }

    /// The request with other values of `marker`, for links to another page.
    pub(crate) fn page_query(&self, marker: &str) -> String {
        let mut pairs: Vec<String> = self
            .raw_query
            .split('&')
            .filter(|p| !p.is_empty() && !p.starts_with("marker="))
            .map(str::to_owned)
            .collect();
        pairs.push(format!("marker={marker}"));
        pairs.join("&")
    }
}

/// What a service answers.
pub(crate) type Handled = Result<Reply, Fail>;
