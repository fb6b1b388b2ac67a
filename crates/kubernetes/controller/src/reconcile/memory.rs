//! What the runtime keeps about an object between reconciles. It may be lost: the next reconcile observes it again.

use std::collections::{BTreeMap, BTreeSet};

use capstan_object::Key;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::failing::Failing;
use crate::controller::Error;
use crate::{Call, Concluded, Effect, Failure, Wait};

/// What is kept about one object.
#[derive(Debug, Clone)]
pub(crate) struct ObjectMemory<K> {
    pub failures: Vec<Failure<K>>,
    pub concluded: Vec<Concluded<K>>,
    pub waits: Vec<Wait>,
    pub failing: Option<Failing>,
}

impl<K> Default for ObjectMemory<K> {
    fn default() -> Self {
        Self { failures: Vec::new(), concluded: Vec::new(), waits: Vec::new(), failing: None }
    }
}

impl<K: Call> ObjectMemory<K> {
    pub fn failed(&mut self, effect: &Effect<K>, error: Error, now: Timestamp) {
        let summary = effect.summary();
        if let Some(known) = self.failures.iter_mut().find(|failure| failure.effect == summary) {
            known.error = error;
            known.attempts += 1;
            return;
        }
        let call = match effect {
            Effect::Call(call) => Some(call.clone()),
            _ => None,
        };
        self.failures.push(Failure { effect: summary, call, error, since: now, attempts: 1 });
    }

    pub fn succeeded(&mut self, effect: &Effect<K>) {
        let summary = effect.summary();
        self.failures.retain(|failure| failure.effect != summary);
    }

    /// Forgets failures of what is no longer wanted.
    pub fn keep_failures_of(&mut self, wanted: &BTreeSet<String>) {
        self.failures.retain(|failure| wanted.contains(&failure.effect));
    }

    pub fn conclude(&mut self, call: &K, result: Option<serde_json::Value>) {
        self.concluded.retain(|known| known.call != *call);
        self.concluded.push(Concluded { call: call.clone(), result });
    }

    pub fn is_concluded(&self, call: &K) -> bool {
        self.concluded.iter().any(|known| known.call == *call)
    }

    /// Records what a decision waits for. A wait that continues keeps its first time.
    pub fn wait_for(&mut self, waits: Vec<Wait>, now: Timestamp) {
        let before = std::mem::take(&mut self.waits);
        self.waits = waits
            .into_iter()
            .map(|mut wait| {
                let known = before.iter().find(|old| old.reason == wait.reason && old.object == wait.object);
                wait.since = wait.since.or_else(|| known.and_then(|old| old.since)).or(Some(now));
                wait
            })
            .collect();
    }

    fn is_empty(&self) -> bool {
        self.failures.is_empty()
            && self.concluded.is_empty()
            && self.waits.is_empty()
            && self.failing.is_none()
    }
}

/// What is kept about all objects of one controller.
pub(crate) struct Memory<K>(Mutex<BTreeMap<Key, ObjectMemory<K>>>);

impl<K> Default for Memory<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Call> Memory<K> {
    /// What is kept about an object, for its reconcile.
    pub fn take(&self, key: &Key) -> ObjectMemory<K> {
        self.0.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn put(&self, key: &Key, memory: ObjectMemory<K>) {
        let mut all = self.0.lock();
        if memory.is_empty() {
            all.remove(key);
        } else {
            all.insert(key.clone(), memory);
        }
    }

    pub fn waits(&self, key: &Key) -> Vec<Wait> {
        self.0.lock().get(key).map(|memory| memory.waits.clone()).unwrap_or_default()
    }
}
