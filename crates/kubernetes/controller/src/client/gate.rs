//! Where a simulation stands between a decision and the world.

use std::fmt;

use capstan_object::Key;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{ApiError, Deletion, Patch};
use crate::KindName;

/// An effect about to happen or just happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum EffectOf<'a> {
    /// An object is created.
    Create {
        /// Kind.
        kind: &'a KindName,
        /// Namespace and name; the name is empty if the server makes it.
        key: &'a Key,
        /// The object.
        body: &'a Value,
    },
    /// An object is changed.
    Patch {
        /// Kind.
        kind: &'a KindName,
        /// Namespace and name.
        key: &'a Key,
        /// `status` and the like.
        subresource: Option<&'a str>,
        /// The change.
        patch: &'a Patch,
    },
    /// An object is replaced, or something is posted to a subresource.
    Replace {
        /// Kind.
        kind: &'a KindName,
        /// Namespace and name.
        key: &'a Key,
        /// `status` and the like.
        subresource: Option<&'a str>,
        /// The object.
        body: &'a Value,
    },
    /// The deletion of an object is asked for.
    Delete {
        /// Kind.
        kind: &'a KindName,
        /// Namespace and name.
        key: &'a Key,
        /// How.
        deletion: &'a Deletion,
    },
    /// A controller calls something outside the API.
    Call {
        /// The object in whose name.
        object: &'a crate::ObjectRef,
        /// What the call does, without secrets.
        summary: &'a str,
        /// Names the thing the call is about.
        key: &'a str,
        /// It creates or destroys: an intent was recorded before.
        journalled: bool,
    },
}

impl fmt::Display for EffectOf<'_> {
    /// One line without bodies: what a trace or a log shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = |subresource: &Option<&str>| subresource.map(|s| format!("/{s}")).unwrap_or_default();
        match self {
            Self::Create { kind, key, .. } => write!(f, "create {kind} {key}"),
            Self::Patch { kind, key, subresource, patch } => {
                write!(f, "{} {kind} {key}{}", patch.verb(), slash(subresource))
            }
            Self::Replace { kind, key, subresource, .. } => {
                write!(f, "replace {kind} {key}{}", slash(subresource))
            }
            Self::Delete { kind, key, .. } => write!(f, "delete {kind} {key}"),
            Self::Call { object, summary, .. } => write!(f, "call {summary} for {object}"),
        }
    }
}

/// What becomes of an effect.
#[derive(Debug)]
pub enum Verdict {
    /// It goes on.
    Proceed,
    /// Before: it does not happen. After: it happened, and the caller hears this instead.
    Fail(ApiError),
}

/// Sees every effect of controllers before and after it happens. A gate that never returns is a process that
/// died there.
pub trait Gate: Send + Sync {
    /// The effect is about to happen.
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, Verdict>;

    /// The effect happened or failed; `result` is what the caller is about to hear.
    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, Verdict>;

    /// A controller reads an object from a cache, in this version.
    fn read(&self, _actor: &str, _kind: &KindName, _key: &Key, _version: u64) {}

    /// A controller is about to decide on this state: kind, object and version of everything it read.
    fn decided(&self, _actor: &str, _object: &crate::ObjectRef, _read: &[(KindName, Key, u64)]) {}
}
