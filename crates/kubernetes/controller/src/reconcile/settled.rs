//! The mark on an object whose reconcile does not settle: it repeats the same change, or keeps failing.
//!
//! It is an annotation, so `capstan why` and `doctor` find it on any API server. The next reconcile that settles removes it.

use capstan_object::ObjectMeta;
use jiff::Timestamp;

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

fn name(controller: &str) -> String {
    format!("{NOT_SETTLED}{controller}")
}

/// The mark of one controller.
pub(crate) fn mark(controller: &str, meta: &ObjectMeta) -> Option<NotSettled> {
    meta.annotations.get(&name(controller)).and_then(|value| NotSettled::read(value))
}

/// Name of the annotation and its new value, if it has to change. `message` has an error code; it is `None` after a
/// reconcile that settled. A mark keeps its first time.
pub(crate) fn change(
    controller: &str,
    meta: &ObjectMeta,
    message: Option<&str>,
    since: Timestamp,
) -> Option<(String, Option<String>)> {
    let name = name(controller);
    let Some(message) = message else { return meta.annotations.get(&name).map(|_| (name, None)) };
    match mark(controller, meta) {
        Some(known) if known.message == message => None,
        known => {
            let since = known.map_or(since, |known| known.since);
            Some((name, Some(format!("{since} {message}"))))
        }
    }
}
