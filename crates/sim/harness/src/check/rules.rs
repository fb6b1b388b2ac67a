//! Properties of the order of effects.

use std::collections::BTreeMap;

use capstan_controller::{EffectOf, INTENTS, KindName, ObjectRef};
use capstan_object::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Checker, Step};
use crate::Objects;

/// A decision made just before a change by someone else may still be carried out, but no later than this.
const GRACE: SignedDuration = SignedDuration::from_secs(1);

/// S5: a call that creates or destroys is recorded on the object before it is made.
pub struct IntentsFirst {
    matters: fn(&str) -> bool,
}

impl IntentsFirst {
    /// `matters` decides by its summary whether a call creates or destroys; the controller's own claim is not
    /// trusted.
    pub fn new(matters: fn(&str) -> bool) -> Self {
        Self { matters }
    }
}

impl Checker for IntentsFirst {
    fn name(&self) -> &'static str {
        "S5"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let EffectOf::Call { object, summary, key, .. } = step.effect else { return Ok(()) };
        if !(self.matters)(summary) {
            return Ok(());
        }
        let stored = objects.get(&object.kind, &object.key).unwrap_or(Value::Null);
        let annotations = stored["metadata"]["annotations"].as_object();
        let intents = annotations.and_then(|all| all.get(&format!("{INTENTS}{}", step.actor)));
        let recorded = intents.and_then(Value::as_str).is_some_and(|text| text.contains(&format!("{key:?}")));
        if recorded { Ok(()) } else { Err(format!("{summary:?} for {object} has no recorded intent")) }
    }
}

/// S10: a paused object gets no call.
pub struct NothingWhilePaused {
    annotation: String,
    since: BTreeMap<ObjectRef, Timestamp>,
}

impl NothingWhilePaused {
    pub fn new(annotation: &str) -> Self {
        Self { annotation: annotation.to_owned(), since: BTreeMap::new() }
    }
}

impl Checker for NothingWhilePaused {
    fn name(&self) -> &'static str {
        "S10"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let EffectOf::Call { object, summary, .. } = step.effect else { return Ok(()) };
        let stored = objects.get(&object.kind, &object.key).unwrap_or(Value::Null);
        let Some(since) = stored["metadata"]["annotations"][self.annotation.as_str()].as_str() else {
            self.since.remove(*object);
            return Ok(());
        };
        // The annotation's value is the time of the pause; if it is not a time, the first call during the pause
        // starts the count.
        let since = since.parse().unwrap_or(step.at);
        let since = *self.since.entry((*object).clone()).or_insert(since);
        if step.at.duration_since(since) > GRACE {
            return Err(format!("{summary:?} for {object}, paused since {since}"));
        }
        Ok(())
    }
}

/// S11: an owner that is being deleted gets no new children.
#[derive(Default)]
pub struct NoChildrenWhileDeleting {
    kinds: Vec<KindName>,
}

impl NoChildrenWhileDeleting {
    pub fn new(kinds: Vec<KindName>) -> Self {
        Self { kinds }
    }
}

impl Checker for NoChildrenWhileDeleting {
    fn name(&self) -> &'static str {
        "S11"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let EffectOf::Create { kind, key, body } = step.effect else { return Ok(()) };
        for owner in body["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            for candidate in self.kinds.iter().filter(|kind| owner["kind"] == *kind.kind) {
                let owner_key = Key::new(key.namespace.clone(), owner["name"].as_str().unwrap_or_default());
                let Some(stored) = objects.get(candidate, &owner_key) else { continue };
                let deleted: Option<Timestamp> =
                    stored["metadata"]["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
                if let Some(deleted) = deleted
                    && step.at.duration_since(deleted) > GRACE
                {
                    return Err(format!(
                        "{kind} {key} is created for {candidate} {owner_key}, which is being deleted"
                    ));
                }
            }
        }
        Ok(())
    }
}
