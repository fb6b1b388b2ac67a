//! Responses of webhooks, interpreted as upstream's client does.

use capstan_schema::bounded::cut;
use capstan_schema::memory::{self, MemoryBudget};
use http::response::Parts;
use http::{StatusCode, header};
use serde_json::Value;

/// Most bytes of a plain-text error that are repeated.
const REPEATED: usize = 2048;

/// Memory limit of a decoded response: conversions of whole lists are as large as all their objects.
pub(super) const MAX_DECODED_ANSWER: usize = 256 * 1024 * 1024;

/// The JSON object of a successful response, or the error.
pub(super) fn read(head: &Parts, body: &[u8], most: usize) -> Result<Value, String> {
    let budget = MemoryBudget::of(most);
    let parsed = memory::from_slice(body, &budget);
    if budget.is_exceeded() {
        return Err(format!(
            "the answer has too many fields and entries: decoded it would take more than {most} bytes"
        ));
    }
    if !(200..=206).contains(&head.status.as_u16()) {
        let reported = parsed.ok().and_then(|status| failure(&status));
        return Err(reported.unwrap_or_else(|| unexpected(head, body)));
    }
    if body.is_empty() {
        let content_type = content_type(head).unwrap_or("application/json");
        return Err(format!(
            "0-length response with status code: {} and content type: {content_type}",
            head.status.as_u16()
        ));
    }
    // Upstream also accepts YAML, where any text is a string.
    let found = match parsed {
        Ok(answer @ Value::Object(_)) => return failure(&answer).map_or(Ok(answer), Err),
        Ok(Value::Array(_)) => "array",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Ok(Value::String(_) | Value::Null) | Err(_) => "string",
    };
    Err(format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {KIND_OF_ANSWER}"
    ))
}

/// The Go type into which upstream first decodes a response.
const KIND_OF_ANSWER: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The message of a failed `Status`.
fn failure(status: &Value) -> Option<String> {
    let is_failure =
        status["kind"] == "Status" && status["apiVersion"] == "v1" && status["status"] != "Success";
    let message = status["message"].as_str().unwrap_or_default();
    is_failure.then(|| match message {
        "" => "unknown".to_owned(),
        message => cut(message, 16 * 1024),
    })
}

fn content_type(head: &Parts) -> Option<&str> {
    head.headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

/// The error for a status code alone.
fn unexpected(head: &Parts, body: &[u8]) -> String {
    let is_text = content_type(head).is_none_or(|content_type| content_type.starts_with("text/"));
    let body = &body[..body.len().min(REPEATED)];
    let said = match is_text {
        true => String::from_utf8_lossy(body).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    let code = head.status;
    match code {
        StatusCode::CONFLICT => "the server reported a conflict".into(),
        StatusCode::NOT_FOUND => "the server could not find the requested resource".into(),
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason".into(),
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials".into(),
        StatusCode::FORBIDDEN | StatusCode::UNSUPPORTED_MEDIA_TYPE => said,
        StatusCode::NOT_ACCEPTABLE => match said.as_str() {
            "" | "unknown" => {
                "the server was unable to respond with a content type that the client supports".into()
            }
            _ => said,
        },
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource".into()
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            "the server rejected our request due to an error in our request".into()
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request".into(),
        StatusCode::GATEWAY_TIMEOUT => {
            "the server was unable to return a response in the time allotted, but may still be processing the request".into()
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later".into()
        }
        code if code.is_server_error() => {
            format!("an error on the server ({said:?}) has prevented the request from succeeding")
        }
        code => format!(
            "the server responded with the status code {} but did not return more information",
            code.as_u16()
        ),
    }
}
