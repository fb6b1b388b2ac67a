//! Reconciles that keep failing: the same mark as for those that do not settle.
//!
//! Without it such a failure would be in the log only: the conditions of the object stay as they were.

use capstan_object::{Key, Object, ObjectMeta};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::error::{ReconcileError, chain};
use super::memory::ObjectMemory;
use super::settled;
use crate::client::{Patch, shortened};
use crate::code::{catalogue, code_in};
use crate::runtime::Tenant;
use crate::{Controller, KindName};

/// An object is marked after so many failures in a row…
const FAILURES: u32 = 3;
/// … of which the first is as long ago. A call whose answer was lost may be unresolved for half a minute.
const LASTS: SignedDuration = SignedDuration::from_secs(45);
/// Another text is not written more often: two errors may take turns.
const REWRITTEN_AFTER: SignedDuration = SignedDuration::from_secs(300);
/// Bytes of an error that a mark keeps.
const LONGEST: usize = 1024;

/// The failures in a row of the reconciles of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failing {
    since: Timestamp,
    failures: u32,
    /// When the mark was written last.
    marked: Option<Timestamp>,
}

impl Failing {
    fn lasts(&self, now: Timestamp) -> bool {
        self.failures >= FAILURES && now.duration_since(self.since) >= LASTS
    }
}

/// What failed, as a mark reports it.
pub(super) struct Reported {
    code: String,
    message: String,
    /// A decision may have turned it into a condition.
    decided: bool,
}

impl Reported {
    /// `None` for a conflict, which is expected, and for what marks the object by itself.
    pub fn of(error: &ReconcileError) -> Option<Self> {
        if error.is_conflict() || matches!(error, ReconcileError::NotSettled(_)) {
            return None;
        }
        let text = chain(error);
        let (code, decided) = match error.code() {
            Some(code) => (code.id(), false),
            None => (code_in(&text).unwrap_or(catalogue::API_REFUSED.id()), true),
        };
        Some(Self { code: code.to_owned(), message: text.replace(&format!("{code}: "), ""), decided })
    }

    pub fn panic() -> Self {
        // The message of a panic may hold anything.
        let message = "it panicked".to_owned();
        Self { code: catalogue::PANIC.id().to_owned(), message, decided: false }
    }
}

/// Counts a failure, and marks the object if it has failed often and long enough.
pub(crate) async fn failed<C: Controller>(
    tenant: &Tenant<C>,
    key: &Key,
    memory: &mut ObjectMemory<C::Call>,
    reported: Reported,
) {
    let now = tenant.shared.env.now();
    let failing = memory.failing.get_or_insert(Failing { since: now, failures: 0, marked: None });
    failing.failures += 1;
    if !failing.lasts(now) {
        return;
    }
    let Ok(Some(object)) = tenant.cache.get(key) else { return };
    let Reported { code, message, decided } = reported;
    let Some(change) = (match decided
        && has_condition(&serde_json::to_value(&*object).unwrap_or_default(), &code)
    {
        true => settled::change(C::NAME, object.metadata(), None, now),
        false => {
            let message = shortened(message, LONGEST);
            let text =
                format!("{code}: controller {} fails on {} {key}: {message}", C::NAME, C::Kind::KIND.kind);
            let recently = failing.marked.is_some_and(|at| now.duration_since(at) < REWRITTEN_AFTER);
            new_mark(C::NAME, object.metadata(), &text, failing.since).filter(|_| !recently)
        }
    }) else {
        return;
    };
    failing.marked = Some(now);
    let (name, value) = change;
    let meta = object.metadata();
    let body = json!({"metadata": {"resourceVersion": meta.resource_version, "annotations": {name: value}}});
    let written = tenant.writer.patch(&KindName::of::<C::Kind>(), key, None, &Patch::Merge(body)).await;
    match written.map(|version| version.parse()) {
        Ok(Ok(version)) => tenant.queue.wrote(key, version),
        Ok(Err(_)) => {}
        Err(error) => {
            tracing::debug!(controller = C::NAME, %key, error = chain(&error), "a failing object cannot be marked");
        }
    }
}

/// The mark and its value, unless the object has one that differs in figures only: those are counters, times and ports.
fn new_mark(
    controller: &str,
    meta: &ObjectMeta,
    text: &str,
    since: Timestamp,
) -> Option<(String, Option<String>)> {
    let words = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    match settled::mark(controller, meta) {
        Some(known) if words(&known.message) == words(text) => None,
        _ => settled::change(controller, meta, Some(text), since),
    }
}

/// Whether the status of an object reports an error with this code.
fn has_condition(object: &Value, code: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let reports = |condition: &Value| condition["message"].as_str().and_then(code_in) == Some(code);
    conditions.is_some_and(|conditions| conditions.iter().any(reports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_not_written_again_for_other_figures() {
        let since = crate::Env::system().now();
        let mut meta = ObjectMeta::named("n", "m");
        let (name, value) = new_mark("c", &meta, "E-X: port 1", since).expect("a first mark");
        meta.annotations.insert(name, value.expect("a value"));
        for (text, written) in [("E-X: port 1", false), ("E-X: port 22", false), ("E-X: host 1", true)] {
            assert_eq!(new_mark("c", &meta, text, since).is_some(), written, "{text}");
        }
    }

    #[test]
    fn an_effect_that_a_condition_reports_needs_no_mark() {
        let object =
            |message: &str| json!({"status": {"conditions": [{"type": "Ready", "message": message}]}});
        for (object, expected) in [
            (object("E-X: no host; next try at 10:00"), true),
            (object("E-Y: no host"), false),
            (json!({}), false),
        ] {
            assert_eq!(has_condition(&object, "E-X"), expected, "{object}");
        }
    }
}
