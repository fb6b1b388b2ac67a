//! The response of a server to one object, without what differs between servers.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Result;
use serde_json::Value;

use crate::api::Reply;

/// A response in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalResponse {
    pub code: u16,
    pub reason: String,
    /// Field, reason and message of each cause. Upstream's order is not guaranteed.
    pub causes: BTreeSet<(String, String, String)>,
    /// The complete message, if there are no causes.
    pub message: String,
    pub warnings: BTreeSet<String>,
    /// The object as the server would store it.
    pub object: String,
}

/// Parts of a response, most severe difference first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Code,
    Reason,
    Causes,
    CauseMessages,
    Message,
    Warnings,
    Object,
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Aspect::Code => "status code",
            Aspect::Reason => "reason",
            Aspect::Causes => "causes (field and reason)",
            Aspect::CauseMessages => "messages of the causes",
            Aspect::Message => "message",
            Aspect::Warnings => "warnings",
            Aspect::Object => "object",
        })
    }
}

impl NormalResponse {
    pub fn of(reply: &Reply) -> Result<Self> {
        let body = reply.json()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let success = reply.status.is_success();
        let causes: BTreeSet<_> = body["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| (text(&cause["field"]), text(&cause["reason"]), text(&cause["message"])))
            .collect();
        let message = if success {
            String::new()
        } else if causes.is_empty() {
            ordered(&text(&body["message"]))
        } else {
            // The rest repeats the messages of the causes.
            text(&body["message"]).split("is invalid:").next().unwrap_or_default().to_owned()
        };
        Ok(Self {
            code: reply.status.as_u16(),
            reason: if success { String::new() } else { text(&body["reason"]) },
            causes,
            message,
            warnings: reply.warnings().iter().map(|warning| ordered(warning)).collect(),
            object: if success { object(body) } else { String::new() },
        })
    }

    /// The most severe aspect in which two responses differ.
    pub fn differs(&self, other: &Self) -> Option<Aspect> {
        let fields = |verdict: &Self| -> BTreeSet<(String, String)> {
            verdict.causes.iter().map(|(field, reason, _)| (field.clone(), reason.clone())).collect()
        };
        [
            (Aspect::Code, self.code != other.code),
            (Aspect::Reason, self.reason != other.reason),
            (Aspect::Causes, fields(self) != fields(other)),
            (Aspect::CauseMessages, self.causes != other.causes),
            (Aspect::Message, self.message != other.message),
            (Aspect::Warnings, self.warnings != other.warnings),
            (Aspect::Object, self.object != other.object),
        ]
        .into_iter()
        .find_map(|(aspect, different)| different.then_some(aspect))
    }
}

impl fmt::Display for NormalResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.code, self.reason)?;
        writeln!(f, "{}", self.message)?;
        for (field, reason, message) in &self.causes {
            writeln!(f, "cause {field}: {reason}: {message}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning {warning}")?;
        }
        write!(f, "{}", self.object)
    }
}

/// Sorts lists of unknown fields, whose order is not guaranteed.
fn ordered(message: &str) -> String {
    let mut parts: Vec<_> = message.split(", ").collect();
    parts.sort_unstable();
    parts.join(", ")
}

fn object(mut body: Value) -> String {
    let metadata = &mut body["metadata"];
    for field in ["uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"] {
        if metadata.get(field).is_some_and(|value| !value.is_null()) {
            metadata[field] = format!("<{field}>").into();
        }
    }
    for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
        entry["time"] = "<time>".into();
    }
    if metadata["managedFields"].is_null()
        && let Some(fields) = metadata.as_object_mut()
    {
        fields.remove("managedFields");
    }
    serde_json::to_string_pretty(&body).unwrap_or_default()
}
