//! Findings of `capstan doctor`.

use serde::Serialize;

/// Severity of a finding. `doctor` fails on [`Self::Bad`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    Fine,
    /// Works now, but needs attention.
    Warning,
    Bad,
}

/// A finding and its fix. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(rename = "health")]
    pub severity: Severity,
    /// What was found, including the object's name.
    pub what: String,
    /// The fix; empty if none is needed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mend: String,
}

impl Finding {
    pub fn fine(what: impl Into<String>) -> Self {
        Self { severity: Severity::Fine, what: what.into(), mend: String::new() }
    }

    pub fn warning(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, what: what.into(), mend: mend.into() }
    }

    pub fn bad(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Bad, what: what.into(), mend: mend.into() }
    }
}
