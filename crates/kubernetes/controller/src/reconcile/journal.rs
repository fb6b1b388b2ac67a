//! Intents: what a controller was about to call, written on the object before the call is made.
//!
//! ```text
//! decide ─▶ intent on the object (acknowledged) ─▶ call ─▶ outcome known ─▶ recorded by the next decision ─▶ intent cleared
//!                                                   │
//!                       crash, lost reply ──────────┴─▶ intent still open ─▶ resolve: looked up before anything else
//! ```
//!
//! The journal is an annotation, so it works on any API server and travels with `clusterctl move` and backups.

use capstan_object::{Object, ObjectMeta, Time};
use jiff::Timestamp;
use serde_json::Value;

use crate::{Call, Controller, Intent, ObserveError};

/// Prefix of the annotations that hold intents, followed by the controller's name.
pub const INTENTS: &str = "capstan.dev/intents-";

pub(crate) fn annotation<C: Controller>() -> String {
    format!("{INTENTS}{}", C::NAME)
}

pub(crate) fn open<C: Controller>(object: &C::Kind) -> Result<Vec<Intent<C::Call>>, ObserveError> {
    let Some(text) = object.metadata().annotations.get(&annotation::<C>()) else { return Ok(Vec::new()) };
    // An intent that cannot be parsed may be any call: nothing is done until a person has checked it.
    serde_json::from_str(text).map_err(|error| ObserveError::Unreadable {
        kind: C::Kind::KIND.kind.to_owned(),
        key: object.key(),
        why: format!("its journal cannot be read: {error}"),
    })
}

/// Whether any controller has an open intent on the object.
pub fn has_open_intents(meta: &ObjectMeta) -> bool {
    meta.annotations.iter().any(|(name, value)| name.starts_with(INTENTS) && value != "[]")
}

pub(crate) fn intent<K: Call>(call: &K, now: Timestamp) -> Intent<K> {
    Intent { key: call.idempotency_key(), call: call.clone(), at: Time::new(now) }
}

/// The annotation's value for these intents: null, which removes it, if there are none.
pub(crate) fn value<K: Call>(intents: &[Intent<K>]) -> Result<Value, serde_json::Error> {
    if intents.is_empty() { Ok(Value::Null) } else { serde_json::to_string(intents).map(Value::String) }
}
