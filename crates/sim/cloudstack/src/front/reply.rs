//! What goes back: one object under the command's name, as JSON or XML.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::xml;
use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::error::ApiError;

/// How a reply is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Xml,
}

pub(super) struct Reply {
    status: StatusCode,
    wrapper: String,
    body: Value,
    /// `X-Description` of an error.
    description: Option<String>,
    cookies: Vec<String>,
}

impl Reply {
    pub(super) fn ok(wrapper: &str, body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            wrapper: wrapper.to_owned(),
            body,
            description: None,
            cookies: Vec::new(),
        }
    }

    pub(super) fn error(wrapper: String, error: &ApiError) -> Self {
        let about: Vec<Value> = error
            .about
            .iter()
            .map(|(uuid, parameter)| json!({"uuid": uuid, "description": parameter}))
            .collect();
        let mut body = json!({"uuidList": about, "errorcode": error.code, "errortext": error.text});
        if let Some(exception) = error.exception {
            body["cserrorcode"] = json!(exception);
        }
        Self {
            status: StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            wrapper,
            body,
            description: error.exception.map(|_| error.text.clone()),
            cookies: Vec::new(),
        }
    }

    /// Text without a wrapper.
    pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from_static(text.as_bytes()));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("application/json;charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }

    /// What a command answered.
    pub(super) fn of(cloud: &mut Cloud, call: &Call, answer: Answer) -> Self {
        let body = match answer {
            Answer::Object(key, value) => json!({key: value}),
            Answer::Body(value) => value,
            Answer::List(key, mut entries) => {
                let count = entries.len();
                if let Some((from, size)) = call.page() {
                    entries = entries.into_iter().skip(from).take(size).collect();
                }
                page(key, count, entries)
            }
            Answer::Page(key, count, entries) => page(key, count, entries),
            Answer::Job(submission) => {
                let id = submission.id.clone();
                let (caller, concerned) = (call.caller, cloud.concerned(call));
                let job = cloud.submit(call.command, (caller.account, caller.user), concerned, submission);
                let mut body = json!({"jobid": cloud.jobs[job].uuid});
                if let Some(id) = id {
                    body["id"] = json!(id);
                }
                body
            }
        };
        Self::ok(&call.command.wrapper(), body)
    }

    pub(super) fn with_cookie(mut self, cookie: &str) -> Self {
        self.cookies.push(cookie.to_owned());
        self
    }

    pub(super) fn render(self, format: Format) -> Response<Bytes> {
        let (kind, text) = match format {
            Format::Json => {
                ("application/json;charset=utf-8", json!({self.wrapper.as_str(): self.body}).to_string())
            }
            Format::Xml => ("text/xml;charset=utf-8", xml::document(&self.wrapper, &self.body)),
        };
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        for cookie in &self.cookies {
            if let Ok(value) = HeaderValue::from_str(cookie) {
                headers.append(header::SET_COOKIE, value);
            }
        }
        let description =
            self.description.and_then(|text| HeaderValue::from_str(&text.replace('\n', " ")).ok());
        if let Some(description) = description {
            headers.insert("x-description", description);
        }
        response
    }
}

/// Nothing at all is an empty object; a page beyond the last has a count and no entries.
fn page(key: &str, count: usize, entries: Vec<Value>) -> Value {
    match (count, entries.is_empty()) {
        (0, _) => json!({}),
        (_, true) => json!({"count": count}),
        _ => json!({"count": count, key: entries}),
    }
}
