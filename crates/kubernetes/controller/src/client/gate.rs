//! A hook before and after every effect, for simulations.

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
        kind: &'a KindName,
        /// Namespace and name; the name is empty if the server makes it.
        key: &'a Key,
        body: &'a Value,
    },
    /// An object is changed.
    Patch {
        kind: &'a KindName,
        key: &'a Key,
        /// `status` and the like.
        subresource: Option<&'a str>,
        patch: &'a Patch,
    },
    /// An object is replaced, or something is posted to a subresource.
    Replace {
        kind: &'a KindName,
        key: &'a Key,
        /// `status` and the like.
        subresource: Option<&'a str>,
        body: &'a Value,
    },
    /// The deletion of an object is asked for.
    Delete { kind: &'a KindName, key: &'a Key, deletion: &'a Deletion },
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

/// Whether an effect happens.
#[derive(Debug)]
pub enum GateVerdict {
    Proceed,
    /// Before the effect: it does not happen. After it: it happened, and the caller gets this error.
    Fail(ApiError),
}

/// Called before and after every effect of controllers. A gate that never returns simulates a process that died there.
pub trait Gate: Send + Sync {
    /// The effect is about to happen.
    fn before<'a>(&'a self, actor: &'a str, effect: &'a EffectOf<'a>) -> BoxFuture<'a, GateVerdict>;

    /// The effect happened or failed; `result` is what the caller is about to hear.
    fn after<'a>(
        &'a self,
        actor: &'a str,
        effect: &'a EffectOf<'a>,
        result: Result<&'a [u8], &'a ApiError>,
    ) -> BoxFuture<'a, GateVerdict>;

    /// A controller reads an object from a cache, in this version.
    fn read(&self, _actor: &str, _kind: &KindName, _key: &Key, _version: u64) {}

    /// A controller is about to decide on this state: kind, object and version of everything it read.
    fn decided(&self, _actor: &str, _object: &crate::ObjectRef, _read: &[(KindName, Key, u64)]) {}
}
