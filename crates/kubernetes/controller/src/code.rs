//! Stable error codes: what failed, whose fault it is, how to fix it. The catalogue is data, so that
//! documentation is generated from it and a test can hold every code against it.
//!
//! A crate declares its codes with [`codes!`](crate::codes) and hands its `CATALOGUE` to whoever documents them.

use std::fmt;

use serde::{Serialize, Serializer};

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The author of the manifest.
    User,
    /// The cloud's operator.
    Cloud,
    /// The workload cluster or a machine of it.
    Cluster,
    /// Whoever runs the management plane.
    Operator,
    /// This program.
    Capstan,
}

impl Fault {
    /// One word, such as `user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Cloud => "cloud",
            Self::Cluster => "cluster",
            Self::Operator => "operator",
            Self::Capstan => "capstan",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The code, such as `E-CS-QUOTA`.
    pub id: &'static str,
    /// What failed, in a few words.
    pub title: &'static str,
    pub fault: Fault,
    /// How to fix it.
    pub mend: &'static str,
}

/// An error code of the catalogue.
#[derive(Clone, Copy)]
pub struct Code(pub &'static Entry);

impl Code {
    /// `E-…`.
    pub fn id(self) -> &'static str {
        self.0.id
    }
}

/// The error code that a message carries among its first words.
pub fn code_in(message: &str) -> Option<&str> {
    let is_code = |word: &str| {
        word.strip_prefix("E-").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        })
    };
    message.split([' ', '\n', ':', ',', '(', ')']).take(64).find(|word| is_code(word))
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// Declares error codes as constants of a module, and their `CATALOGUE`.
///
/// ```ignore
/// codes! {
///     QUOTA = "E-CS-QUOTA", Cloud, "the account's quota is exhausted", "raise the quota or delete unused machines";
/// }
/// ```
#[macro_export]
macro_rules! codes {
    ($($name:ident = $id:literal, $fault:ident, $title:literal, $mend:literal;)+) => {
        $(
            #[doc = concat!("`", $id, "`: ", $title, ".")]
            pub const $name: $crate::Code = $crate::Code(&$crate::CodeEntry {
                id: $id,
                title: $title,
                fault: $crate::Fault::$fault,
                mend: $mend,
            });
        )+
        /// Every code of this module.
        pub const CATALOGUE: &[$crate::Code] = &[$($name),+];
    };
}

/// Codes that every controller can meet.
pub mod catalogue {
    crate::codes! {
        API_REFUSED = "E-API-REFUSED", Capstan,
            "the API server refused a write",
            "read the server's reason in the message; a webhook or a policy may deny what the controller needs";
        API_CONFLICT = "E-API-CONFLICT", Operator,
            "conflict: an object changed between read and write",
            "nothing: it is retried; if it repeats, two controllers manage the same object";
        API_UNREACHABLE = "E-API-UNREACHABLE", Operator,
            "the API server did not answer",
            "check that the API server is running and reachable";
        API_LIMIT = "E-API-LIMIT", Operator,
            "a response of the API server exceeds a limit",
            "find the kind with too many or too large objects and delete those that are not needed";
        NAME_TAKEN = "E-NAME-TAKEN", User,
            "an object of this name already exists and has another owner",
            "rename or delete the other object";
        CALL_UNKNOWN = "E-CALL-UNKNOWN", Cloud,
            "the result of a call to the cloud is not known",
            "nothing: the result is looked up before the next call";
        CALL_UNSUPPORTED = "E-CALL-UNSUPPORTED", Capstan,
            "a controller does not support a call that it decided on",
            "report it as a bug";
        ENCODE = "E-ENCODE", Capstan,
            "an object cannot be encoded as JSON",
            "report it as a bug";
        PAUSED = "E-PAUSED", User,
            "the object is paused and is not reconciled",
            "resume the cluster with `capstan resume`, or remove the annotation cluster.x-k8s.io/paused from the object";
        OBSERVE = "E-OBSERVE", Operator,
            "something that the object depends on cannot be read",
            "the message names what cannot be read; correct it, or wait for the retry";
        NOT_SETTLED = "E-NOT-SETTLED", Capstan,
            "a controller repeats the same change",
            "undo the last change of the object that the message names; report it as a bug, with `capstan support-bundle`";
        PANIC = "E-PANIC", Capstan,
            "a controller panicked",
            "report it as a bug, with `capstan support-bundle`; the log has the message of the panic";
        WORKLOAD_UNREACHABLE = "E-WORKLOAD-UNREACHABLE", Cluster,
            "the workload cluster is unreachable",
            "check the control plane of the cluster and the network between it and the management plane";
        WORKLOAD_LIMIT = "E-WORKLOAD-LIMIT", Cluster,
            "a response of the workload cluster exceeds a limit",
            "check what responds at the server address in the cluster's kubeconfig Secret";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_have_a_fix() {
        let mut ids: Vec<_> = catalogue::CATALOGUE.iter().map(|code| code.id()).collect();
        for code in catalogue::CATALOGUE {
            assert!(code.id().starts_with("E-") && !code.0.title.is_empty() && !code.0.mend.is_empty());
            assert!(!code.0.title.ends_with('.'), "{code}: titles are phrases");
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), catalogue::CATALOGUE.len());
    }
}
