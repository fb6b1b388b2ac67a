//! Events, as `kubectl events` shows them. Repeated events become a series.

use std::collections::BTreeMap;

use capstan_env::Env;
use capstan_object::{Key, ObjectMeta, Scope};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::client::{Client, Patch};
use crate::{KindName, Note, NoteKind, ObjectRef};

/// An event that repeats within this time is one series, as client-go counts it.
const SERIES: SignedDuration = SignedDuration::from_mins(6);
/// A series that goes on is written again this often, as client-go does.
const REFRESH: SignedDuration = SignedDuration::from_mins(30);
/// Series remembered; the oldest are forgotten beyond that.
const MOST: usize = 4096;

/// Writes events. What cannot be written is logged and dropped: nothing waits for an event.
pub(crate) struct Recorder {
    client: Client,
    env: Env,
    instance: String,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Clone)]
struct Known {
    key: Key,
    count: u32,
    last: Timestamp,
    written: Timestamp,
}

/// How a note is written.
enum Step {
    Create(Key),
    Series(Key, u32),
    Nothing,
}

impl Recorder {
    pub fn new(client: Client, env: Env, instance: &str) -> Self {
        Self { client, env, instance: instance.to_owned(), known: Mutex::default() }
    }

    pub async fn record(&self, controller: &str, object: &ObjectRef, meta: &ObjectMeta, notes: Vec<Note>) {
        let kind = events();
        for note in notes {
            let now = self.env.now();
            let result = match self.step(controller, object, meta, &note, now) {
                Step::Nothing => continue,
                Step::Create(key) => {
                    let body = self.body(controller, object, meta, &note, &key, now);
                    self.client.named(controller).create(&kind, &key.namespace, &body).await
                }
                Step::Series(key, count) => {
                    let series = json!({"series": {"count": count, "lastObservedTime": micros(now)}});
                    self.client.named(controller).patch(&kind, &key, None, &Patch::Merge(series)).await
                }
            };
            if let Err(error) = result {
                tracing::debug!(%object, reason = note.reason, %error, "an event was not written");
            }
        }
    }

    fn step(
        &self,
        controller: &str,
        object: &ObjectRef,
        meta: &ObjectMeta,
        note: &Note,
        now: Timestamp,
    ) -> Step {
        let same = format!(
            "{controller}\n{}\n{object}\n{:?}\n{}\n{}\n{}",
            meta.uid, note.kind, note.reason, note.action, note.message
        );
        let mut known = self.known.lock();
        if let Some(series) = known.get_mut(&same)
            && now.duration_since(series.last) < SERIES
        {
            series.count += 1;
            series.last = now;
            if series.count > 2 && now.duration_since(series.written) < REFRESH {
                return Step::Nothing;
            }
            series.written = now;
            return Step::Series(series.key.clone(), series.count);
        }
        if known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, series)| series.last).map(|(same, _)| same.clone());
            if let Some(oldest) = oldest {
                known.remove(&oldest);
            }
        }
        // Derived from content and time, because one seed must give one trace.
        let digest = Sha256::digest(format!("{same}\n{now}"));
        let suffix: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let namespace = if object.kind.scope == Scope::Cluster { "default" } else { &object.key.namespace };
        let key = Key::new(namespace, format!("{}.{suffix}", object.key.name));
        known.insert(same, Known { key: key.clone(), count: 1, last: now, written: now });
        Step::Create(key)
    }

    fn body(
        &self,
        controller: &str,
        object: &ObjectRef,
        meta: &ObjectMeta,
        note: &Note,
        key: &Key,
        now: Timestamp,
    ) -> serde_json::Value {
        let reference = |object: &ObjectRef, uid: &str| {
            let mut reference = json!({
                "apiVersion": object.kind.api_version(), "kind": object.kind.kind, "name": object.key.name,
            });
            if !object.key.namespace.is_empty() {
                reference["namespace"] = object.key.namespace.as_str().into();
            }
            if !uid.is_empty() {
                reference["uid"] = uid.into();
            }
            reference
        };
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "eventTime": micros(now),
            "reportingController": controller,
            "reportingInstance": self.instance,
            "action": note.action,
            "reason": note.reason,
            "regarding": reference(object, &meta.uid),
            "note": shortened(&note.message),
            "type": match note.kind { NoteKind::Normal => "Normal", NoteKind::Warning => "Warning" },
        });
        if let Some(related) = &note.related {
            body["related"] = reference(related, "");
        }
        body
    }
}

fn events() -> KindName {
    KindName::namespaced("events.k8s.io", "v1", "Event", "events")
}

/// `metav1.MicroTime`.
fn micros(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The API takes 1024 bytes of a note.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(1024);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
