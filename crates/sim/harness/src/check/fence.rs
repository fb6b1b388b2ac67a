//! Decisions follow our own writes.

use std::collections::BTreeMap;

use capstan_controller::{EffectOf, KindName, ObjectRef};
use capstan_object::Key;
use serde_json::Value;

use super::{Checker, Step};
use crate::Objects;

/// S12: no decision is made on state older than our own last acknowledged write of an object it read.
#[derive(Default)]
pub struct FollowsOwnWrites {
    acknowledged: BTreeMap<(KindName, Key), u64>,
}

impl Checker for FollowsOwnWrites {
    fn name(&self) -> &'static str {
        "S12"
    }

    fn after(&mut self, step: &Step<'_>, _: &Objects) -> Result<(), String> {
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
        }
        Ok(())
    }

    fn decided(
        &mut self,
        actor: &str,
        object: &ObjectRef,
        read: &[(KindName, Key, u64)],
    ) -> Result<(), String> {
        for (kind, key, version) in read {
            let written = self.acknowledged.get(&(kind.clone(), key.clone())).copied().unwrap_or(0);
            if *version < written {
                return Err(format!(
                    "{actor} decided about {object} on version {version} of {kind} {key}, of which {written} was written"
                ));
            }
        }
        Ok(())
    }
}

/// The version of an object as it was answered.
pub(super) fn version(bytes: &[u8]) -> Option<u64> {
    let object: Value = serde_json::from_slice(bytes).ok()?;
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
