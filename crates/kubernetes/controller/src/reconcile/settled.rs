//! The mark on an object whose reconcile repeats the same change.
//!
//! It is an annotation, so `capstan why` and `doctor` find it on any API server. The next reconcile that settles removes it.

use capstan_object::ObjectMeta;
use jiff::Timestamp;

use crate::code::catalogue;

/// Prefix of the annotation, followed by the controller's name. The value is the time of the first such reconcile, and the
/// error with its code.
const NOT_SETTLED: &str = "capstan.dev/not-settled-";

/// A controller that does not settle on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSettled {
    pub since: Timestamp,
    /// With its error code.
    pub message: String,
}

impl NotSettled {
    /// What controllers have marked on an object.
    pub fn of(meta: &ObjectMeta) -> Vec<Self> {
        let marks = meta.annotations.iter().filter(|(name, _)| name.starts_with(NOT_SETTLED));
        marks.filter_map(|(_, value)| Self::read(value)).collect()
    }

    fn read(value: &str) -> Option<Self> {
        let (since, message) = value.split_once(' ')?;
        Some(Self { since: since.parse().ok()?, message: message.to_owned() })
    }
}

/// Name of the annotation and its new value, if it has to change; `what` is `None` after a reconcile that settled.
pub(crate) fn change(
    controller: &str,
    meta: &ObjectMeta,
    what: Option<&str>,
    now: Timestamp,
) -> Option<(String, Option<String>)> {
    let name = format!("{NOT_SETTLED}{controller}");
    let before = meta.annotations.get(&name);
    let Some(what) = what else { return before.map(|_| (name, None)) };
    let message = format!("{}: {what}", catalogue::NOT_SETTLED);
    match before.and_then(|value| NotSettled::read(value)) {
        Some(known) if known.message == message => None,
        known => {
            let since = known.map_or(now, |known| known.since);
            Some((name, Some(format!("{since} {message}"))))
        }
    }
}
