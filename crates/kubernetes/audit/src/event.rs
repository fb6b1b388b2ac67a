//! What is recorded of a request.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// How much of a request is recorded. Each level includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what and when, without bodies.
    Metadata,
    /// The request body too.
    Request,
    /// The response body too.
    RequestResponse,
}

/// When an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Before the request is handled.
    RequestReceived,
    /// The headers of a watch or another long response are sent.
    ResponseStarted,
    /// The response is sent.
    ResponseComplete,
    /// The handler failed.
    Panic,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ResponseStatus {
    /// Always `{}`, as upstream writes it.
    pub metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub code: u16,
}

/// An object as text: decoded it would take many times the memory, for as long as its request lasts.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Document(Box<RawValue>);

impl From<&Value> for Document {
    fn from(object: &Value) -> Self {
        // A JSON value has a text.
        Self(to_raw_value(object).unwrap_or_default())
    }
}

impl Document {
    /// A document from its text, which is copied and not decoded; without the managed fields of the object, or of the
    /// objects of a list, if wanted. Only one object of a list is decoded at a time. `None` if it is not JSON.
    pub fn from_json(text: &[u8], omit_managed_fields: bool) -> Option<Self> {
        let text = if omit_managed_fields {
            without_managed_fields(text)?
        } else {
            std::str::from_utf8(text).ok()?.trim().to_owned()
        };
        // An event is one line. A line break of JSON is between its words: in a string it is escaped.
        let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
        RawValue::from_string(text).ok().map(Self)
    }
}

fn without_managed_fields(text: &[u8]) -> Option<String> {
    fn strip(object: &RawValue) -> Option<String> {
        let mut object: Value = serde_json::from_str(object.get()).ok()?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Some(object.to_string())
    }
    let whole: &RawValue = serde_json::from_slice(text).ok()?;
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(whole.get()) else {
        return Some(whole.get().to_owned());
    };
    let items =
        fields.get("items").and_then(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()).ok());
    let Some(items) = items else { return strip(whole) };
    let mut out = String::with_capacity(text.len());
    for (name, value) in &fields {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        if name != "items" {
            out.push_str(value.get());
            continue;
        }
        for (index, item) in items.iter().enumerate() {
            out.push(if index == 0 { '[' } else { ',' });
            out.push_str(&strip(item)?);
        }
        out.push_str(if items.is_empty() { "[]" } else { "]" });
    }
    out.push('}');
    Some(out)
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// One stage of one request, as `audit.k8s.io/v1` has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub kind: &'static str,
    pub api_version: &'static str,
    pub level: Level,
    /// The same in all stages of a request, and in the response header `Audit-Id`.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    pub stage: Stage,
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    pub verb: String,
    /// The authenticated user.
    pub user: UserInfo,
    /// As whom the request was handled, if the user impersonates somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<UserInfo>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<ResponseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Document>,
    #[serde(serialize_with = "microseconds")]
    pub request_received_timestamp: Timestamp,
    #[serde(serialize_with = "microseconds")]
    pub stage_timestamp: Timestamp,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    pub const KIND: &'static str = "Event";
    pub const API_VERSION: &'static str = "audit.k8s.io/v1";
}

/// As Kubernetes' `MicroTime`: always six digits.
fn microseconds<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_one_line_with_or_without_managed_fields() {
        let object = r#"{"kind":"A","metadata":{"managedFields":[{}],"name":"a"},"spec":{"text":"a\\nb"}}"#;
        let stripped = r#"{"kind":"A","metadata":{"name":"a"},"spec":{"text":"a\\nb"}}"#;
        let list = |item: &str| format!(r#"{{"apiVersion":"v1","items":[{item},{item}],"kind":"List"}}"#);
        let pretty: Value = serde_json::from_str(object).expect("JSON");
        let pretty = serde_json::to_string_pretty(&pretty).expect("a text");
        for (text, omit, recorded) in [
            (object.to_owned(), false, object.to_owned()),
            (object.to_owned() + "\n", false, object.to_owned()),
            (object.to_owned(), true, stripped.to_owned()),
            (pretty.clone(), true, stripped.to_owned()),
            (list(object), true, list(stripped)),
            (list(&pretty), true, list(stripped)),
            (r#"{"items":[]}"#.to_owned(), true, r#"{"items":[]}"#.to_owned()),
            (r#"{"items":"none"}"#.to_owned(), true, r#"{"items":"none"}"#.to_owned()),
            ("[1]".to_owned(), true, "[1]".to_owned()),
        ] {
            let document = Document::from_json(text.as_bytes(), omit);
            assert_eq!(document.as_ref().map(|document| document.0.get()), Some(recorded.as_str()), "{text}");
        }
        let document = Document::from_json(pretty.as_bytes(), false).expect("JSON");
        assert!(!document.0.get().contains('\n'));
        assert_eq!(Document::from_json(b"{", true), None);
    }
}
