//! Decisions are based on our own latest writes.

use std::collections::BTreeMap;

use capstan_controller::{EffectOf, KindName, ObjectRef};
use capstan_object::Key;
use serde_json::Value;

use super::{Checker, Step};
use crate::Objects;

/// S12: no cache shows a controller state older than a write whose response this process has received, and no
/// controller decides about an object on state older than its own last write to it. Writes of others, or of the same
/// controller for another object, are not covered: the precondition of its own write detects them.
#[derive(Default)]
pub struct FollowsOwnWrites {
    acknowledged: BTreeMap<(KindName, Key), u64>,
    by_actor: BTreeMap<(String, KindName, Key), u64>,
}

impl Checker for FollowsOwnWrites {
    fn name(&self) -> &'static str {
        "S12"
    }

    fn after(&mut self, step: &Step<'_>, _: &Objects) -> Result<(), String> {
        if step.workload {
            return Ok(());
        }
        let (kind, key) = match step.effect {
            EffectOf::Create { kind, key, .. }
            | EffectOf::Patch { kind, key, .. }
            | EffectOf::Replace { kind, key, .. } => (*kind, *key),
            _ => return Ok(()),
        };
        if let Ok(bytes) = step.result
            && let Some(version) = version(bytes)
        {
            let known = self.acknowledged.entry((kind.clone(), key.clone())).or_default();
            *known = version.max(*known);
            let own = (step.actor.to_owned(), kind.clone(), key.clone());
            let known = self.by_actor.entry(own).or_default();
            *known = version.max(*known);
        }
        Ok(())
    }

    fn read(&mut self, actor: &str, kind: &KindName, key: &Key, version: u64) -> Result<(), String> {
        let written = self.acknowledged.get(&(kind.clone(), key.clone())).copied().unwrap_or(0);
        if version < written {
            return Err(format!(
                "{actor} reads version {version} of {kind} {key}, but {written} was written"
            ));
        }
        Ok(())
    }

    fn decided(
        &mut self,
        actor: &str,
        object: &ObjectRef,
        read: &[(KindName, Key, u64)],
    ) -> Result<(), String> {
        for (kind, key, version) in
            read.iter().filter(|(kind, key, _)| *kind == object.kind && *key == object.key)
        {
            let own = (actor.to_owned(), kind.clone(), key.clone());
            let written = self.by_actor.get(&own).copied().unwrap_or(0);
            if *version < written {
                return Err(format!(
                    "{actor} decided about {object} on version {version} of {kind} {key}, but it wrote {written}"
                ));
            }
        }
        Ok(())
    }
}

/// The resource version in a response.
pub(super) fn version(bytes: &[u8]) -> Option<u64> {
    let object: Value = serde_json::from_slice(bytes).ok()?;
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
