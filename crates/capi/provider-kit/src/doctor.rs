//! What `capstan doctor` reports.

use serde::Serialize;

/// How bad a finding is. Something bad makes `doctor` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// In order.
    Fine,
    /// Works, and will not for ever.
    Warning,
    /// Does not work.
    Bad,
}

/// What was found, and the fix. Never carries a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    #[serde(rename = "health")]
    pub severity: Severity,
    /// What was found, the object's name in it.
    pub what: String,
    /// The fix; empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mend: String,
}

impl Finding {
    /// Something is in order.
    pub fn fine(what: impl Into<String>) -> Self {
        Self { severity: Severity::Fine, what: what.into(), mend: String::new() }
    }

    /// Something needs attention soon.
    pub fn warning(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, what: what.into(), mend: mend.into() }
    }

    /// Something does not work.
    pub fn bad(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Bad, what: what.into(), mend: mend.into() }
    }
}
