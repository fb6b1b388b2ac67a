//! How long steps of earlier operations took.

use std::collections::BTreeMap;

use capstan_object::ObjectMeta;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{HISTORY, Intention, Operation};

/// Runs remembered per step: enough for a median, little enough for an annotation.
const MOST: usize = 9;

/// Seconds that steps took, newest last, by intention and step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History(BTreeMap<String, Vec<i64>>);

fn place(intention: Intention, step: &str) -> String {
    format!("{intention:?}/{step}")
}

impl History {
    /// The history on an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        let text = meta.annotations.get(HISTORY);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Writes the history on an object.
    pub fn put(&self, meta: &mut ObjectMeta) -> Result<(), serde_json::Error> {
        meta.annotations.insert(HISTORY.to_owned(), serde_json::to_string(self)?);
        Ok(())
    }

    /// Takes in the steps of an operation that is over, unless it was disturbed.
    pub fn learn(&mut self, operation: &Operation) {
        if operation.disturbed {
            return;
        }
        for step in &operation.steps {
            if let Some(took) = step.took() {
                let times = self.0.entry(place(operation.intention, &step.name)).or_default();
                times.push(took.as_secs());
                if times.len() > MOST {
                    times.remove(0);
                }
            }
        }
    }

    pub fn median(&self, intention: Intention, step: &str) -> Option<SignedDuration> {
        let mut times = self.0.get(&place(intention, step))?.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().map(SignedDuration::from_secs)
    }
}
