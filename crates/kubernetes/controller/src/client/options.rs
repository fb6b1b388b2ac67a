//! Parameters of requests.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Label selector.
    pub labels: String,
    /// Field selector.
    pub fields: String,
    /// Page size.
    pub limit: Option<u32>,
    /// Where the page begins.
    pub next: String,
    /// Version to begin at.
    pub resource_version: String,
    /// Begin a watch with what is there.
    pub initial_events: bool,
    /// Seconds after which the server ends a watch.
    pub timeout_seconds: Option<u32>,
}

impl ListOptions {
    fn parts(&self) -> Vec<String> {
        let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut parts = Vec::new();
        for (name, value) in [
            ("labelSelector", &self.labels),
            ("fieldSelector", &self.fields),
            ("continue", &self.next),
            ("resourceVersion", &self.resource_version),
        ] {
            if !value.is_empty() {
                parts.push(format!("{name}={}", escape(value)));
            }
        }
        if let Some(limit) = self.limit {
            parts.push(format!("limit={limit}"));
        }
        parts
    }

    pub(super) fn query(&self) -> String {
        let parts = self.parts();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    pub(super) fn watch_query(&self) -> String {
        let mut parts = self.parts();
        parts.push("watch=true&allowWatchBookmarks=true".to_owned());
        if self.initial_events {
            parts.push("sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned());
        }
        if let Some(seconds) = self.timeout_seconds {
            parts.push(format!("timeoutSeconds={seconds}"));
        }
        format!("?{}", parts.join("&"))
    }
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// RFC 7396.
    Merge(Value),
    /// RFC 6902.
    Json(Value),
    /// Strategic merge: built-in kinds only.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// Applied configuration of the field manager.
        body: Value,
        /// Take fields from other managers.
        force: bool,
    },
}

impl Patch {
    pub fn body(&self) -> &Value {
        match self {
            Self::Merge(body) | Self::Json(body) | Self::Strategic(body) | Self::Apply { body, .. } => body,
        }
    }

    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            _ => "patch",
        }
    }
}

/// Deletion propagation: what happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The object goes at once, dependents after it.
    Background,
    /// Dependents go first.
    Foreground,
    /// Dependents stay.
    Orphan,
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only in this version.
    pub resource_version: Option<String>,
    /// What becomes of dependents; the server's default if unset.
    pub propagation: Option<Propagation>,
    /// Seconds that a Pod has to end; its own if unset.
    pub grace_seconds: Option<u32>,
}

impl Deletion {
    pub(super) fn body(&self) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            }
            .into();
        }
        if let Some(seconds) = self.grace_seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        body
    }
}
