//! The rules of ownership: which managers gain, lose and keep fields when an object changes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::conflict::{Conflict, Conflicts};
use super::fieldpath::{Set, value};
use super::managed::{ManagerId, Owned};
use super::typed::{self, Comparison, Duplicates, Type};
use super::{Failure, Versions};
use crate::Schema;

pub(super) type Managers = BTreeMap<ManagerId, Owned>;

/// An object with the schema of its version.
struct Typed<'v> {
    value: Cow<'v, Value>,
    schema: Arc<Schema>,
}

impl Typed<'_> {
    fn of(&self) -> Type<'_> {
        Type::object(&self.schema)
    }

    fn paths(&self) -> Set {
        typed::field_set(&self.value, self.of())
    }

    fn named(&self, set: &Set) -> Set {
        typed::with_named_parents(set, self.of())
    }

    fn without(&self, fields: &Set) -> Typed<'static> {
        let value = typed::remove(&self.value, fields, self.of());
        Typed { value: Cow::Owned(value), schema: self.schema.clone() }
    }
}

/// Effect of a write on the fields of others, in one version.
struct Changed {
    /// Added or modified.
    written: Set,
    removed: Set,
}

impl Changed {
    fn of(comparison: &Comparison) -> Self {
        Self { written: comparison.modified.union(&comparison.added), removed: comparison.removed.clone() }
    }
}

/// The rules for one request.
pub(super) struct Updater<'a> {
    pub versions: &'a dyn Versions,
    pub schema: Arc<Schema>,
    pub api_version: &'a str,
    pub reset: &'a Set,
}

impl<'a> Updater<'a> {
    fn typed<'v>(&self, value: &'v Value) -> Typed<'v> {
        Typed { value: Cow::Borrowed(value), schema: self.schema.clone() }
    }

    /// Converts the object; `None` if the version no longer exists.
    fn convert<'v>(&self, object: &'v Typed<'_>, to: &str) -> Result<Option<Typed<'v>>, String> {
        let Some(map) = object.value.as_object() else {
            return Err(format!(
                "failed to convert value to unstructured for type {}",
                crate::patch::go::type_name(&object.value)
            ));
        };
        if map.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(Some(Typed { value: Cow::Borrowed(&object.value), schema: object.schema.clone() }));
        }
        let Some(schema) = self.versions.schema(to) else { return Ok(None) };
        let value = self.versions.convert(&object.value, to)?;
        typed::validate(&value, Type::object(&schema), Duplicates::Refused).map_err(|e| e.to_string())?;
        Ok(Some(Typed { value: Cow::Owned(value), schema }))
    }

    /// The fields that a manager who turned `live` into `new` gains. All others lose them.
    pub fn update(&self, live: &Value, new: &Value, managers: Managers) -> Result<(Managers, Set), Failure> {
        let mut managers = self.reconcile(live, managers)?;
        let changed = self.settle(live, new, &mut managers, None, true)?;
        let taken = changed.modified.union(&changed.added).recursive_difference(self.reset);
        Ok((managers, taken))
    }

    /// Merges a configuration. The object is `None` if it does not change.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: Managers,
        manager: &ManagerId,
        force: bool,
    ) -> Result<(Option<Value>, Managers), Failure> {
        let of = Type::object(&self.schema);
        let mut managers = self.reconcile(live, managers)?;
        let merged = typed::merge(live, config, of)
            .map_err(|e| Failure::Internal(format!("failed to merge config: {e}")))?
            .unwrap_or_default();
        let set = typed::field_set(config, of).recursive_difference(self.reset);
        let owned = Owned { set, api_version: self.api_version.to_owned(), applied: true };
        let last = managers.insert(manager.clone(), owned);
        let new = self
            .prune(merged, &managers, last.as_ref())
            .map_err(|e| Failure::Internal(format!("failed to prune fields: {e}")))?;
        self.settle(live, &new, &mut managers, Some(manager), force)?;
        let new = if value::equal(live, &new) { None } else { Some(new) };
        Ok((new, managers))
    }

    /// Compares, and takes the changes from every manager except `workflow`.
    fn settle(
        &self,
        old: &Value,
        new: &Value,
        managers: &mut Managers,
        workflow: Option<&ManagerId>,
        force: bool,
    ) -> Result<Comparison, Failure> {
        let compare = |old: &Typed<'_>, new: &Typed<'_>| {
            typed::compare(&old.value, &new.value, old.of())
                .map(|comparison| comparison.excluding(self.reset))
                .map_err(|e| Failure::Internal(format!("failed to compare objects: {e}")))
        };
        let (old, new) = (self.typed(old), self.typed(new));
        let changed = compare(&old, &new)?;
        // All versions are converted before any error is returned, so that a caller that has to fetch conversions
        // learns about all of them.
        let others: BTreeSet<String> = managers
            .iter()
            .filter(|(id, owned)| Some(*id) != workflow && owned.api_version != self.api_version)
            .map(|(_, owned)| owned.api_version.clone())
            .collect();
        let converted: Vec<_> = others
            .into_iter()
            .map(|version| (self.convert(&old, &version), self.convert(&new, &version), version))
            .collect();
        let mut versions: BTreeMap<String, Option<Changed>> = BTreeMap::new();
        versions.insert(self.api_version.to_owned(), Some(Changed::of(&changed)));
        for (old, new, version) in converted {
            let old = old.map_err(|e| Failure::Internal(format!("failed to convert old object: {e}")))?;
            let new = new.map_err(|e| Failure::Internal(format!("failed to convert new object: {e}")))?;
            let comparison = match (old, new) {
                (Some(old), Some(new)) => Some(Changed::of(&compare(&old, &new)?)),
                _ => None,
            };
            versions.insert(version, comparison);
        }
        let mut conflicts: BTreeMap<ManagerId, Set> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, owned) in managers.iter().filter(|(id, _)| Some(*id) != workflow) {
            match versions.get(&owned.api_version).and_then(Option::as_ref) {
                Some(changed) => {
                    let conflict = owned.set.intersection(&changed.written);
                    if !conflict.is_empty() {
                        conflicts.insert(id.clone(), conflict);
                    }
                }
                // The version no longer exists, and neither does what was owned in it.
                None => gone.push(id.clone()),
            }
        }
        for id in gone {
            managers.remove(&id);
        }
        if !force && !conflicts.is_empty() {
            let all = conflicts.into_iter().flat_map(|(id, set)| {
                set.paths().into_iter().map(move |path| Conflict { manager: id.clone(), path })
            });
            return Err(Failure::Conflict(Conflicts(all.collect())));
        }
        for (id, owned) in managers.iter_mut().filter(|(id, _)| Some(*id) != workflow) {
            if let Some(conflict) = conflicts.get(id) {
                owned.set = owned.set.difference(conflict);
            }
            if let Some(Some(changed)) = versions.get(&owned.api_version)
                && !changed.removed.is_empty()
            {
                owned.set = owned.set.difference(&changed.removed);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok(changed)
    }

    /// Removes what the manager applied last time, did not apply this time, and no other manager owns.
    fn prune(&self, merged: Value, managers: &Managers, last: Option<&Owned>) -> Result<Value, String> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let whole = self.typed(&merged);
        let converted = self
            .convert(&whole, &last.api_version)
            .map_err(|e| format!("failed to convert merged object to last applied version: {e}"))?;
        let Some(converted) = converted else { return Ok(merged) };
        let pruned = converted.without(&converted.named(&last.set));
        let pruned = self
            .add_back_owned(&converted, pruned, &last.api_version, managers)
            .map_err(|e| format!("failed add back owned items: {e}"))?;
        let pruned = self
            .add_back_dangling(&converted, &pruned, last)
            .map_err(|e| format!("failed add back dangling items: {e}"))?;
        match self.convert(&pruned, self.api_version)? {
            Some(pruned) => Ok(pruned.value.into_owned()),
            None => Err(format!("no schema for {}", self.api_version)),
        }
    }

    /// Adds back what others, or the new configuration, own.
    fn add_back_owned(
        &self,
        merged: &Typed<'_>,
        pruned: Typed<'static>,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<Typed<'static>, String> {
        let mut by_version: BTreeMap<&str, Set> = BTreeMap::new();
        for owned in managers.values() {
            let set = by_version.entry(&owned.api_version).or_default();
            *set = set.union(&owned.set);
        }
        // The pruned version goes first: conversion may need pruned fields.
        let first = by_version.remove_entry(pruned_version);
        let mut merged =
            Typed { value: Cow::Owned(merged.value.clone().into_owned()), schema: merged.schema.clone() };
        let mut pruned = pruned;
        for (version, managed) in first.into_iter().chain(by_version) {
            let converted = self
                .convert(&merged, version)
                .map_err(|e| format!("failed to convert merged object at version {version}: {e}"))?;
            let Some(whole) = converted else { continue };
            let whole = Typed { value: Cow::Owned(whole.value.into_owned()), schema: whole.schema };
            let converted = self
                .convert(&pruned, version)
                .map_err(|e| format!("failed to convert pruned object at version {version}: {e}"))?;
            let Some(part) = converted else {
                merged = whole;
                continue;
            };
            let keep = whole.named(&part.paths()).union(&whole.named(&managed));
            let drop = whole.named(&whole.paths()).difference(&keep);
            pruned = whole.without(&drop);
            merged = whole;
        }
        Ok(pruned)
    }

    /// Adds back what the manager did not own: list entries and fields that were removed with their parents.
    fn add_back_dangling(
        &self,
        merged: &Typed<'_>,
        pruned: &Typed<'_>,
        last: &Owned,
    ) -> Result<Typed<'static>, String> {
        let converted = self
            .convert(pruned, &last.api_version)
            .map_err(|e| format!("failed to convert pruned object to last applied version: {e}"))?;
        let Some(pruned) = converted else {
            return Ok(Typed {
                value: Cow::Owned(merged.value.clone().into_owned()),
                schema: merged.schema.clone(),
            });
        };
        let kept = merged.named(&pruned.paths());
        let all = merged.named(&merged.paths());
        let last = merged.named(&last.set);
        Ok(merged.without(&all.difference(&kept).intersection(&last)))
    }

    /// Adapts all sets to schemas that changed since they were written. Sets of removed versions are dropped.
    fn reconcile(&self, live: &Value, managers: Managers) -> Result<Managers, Failure> {
        let live = self.typed(live);
        let versions: BTreeSet<&str> = managers.values().map(|owned| owned.api_version.as_str()).collect();
        let converted: Vec<_> =
            versions.into_iter().map(|version| (version.to_owned(), self.convert(&live, version))).collect();
        let mut schemas: BTreeMap<String, Option<Arc<Schema>>> = BTreeMap::new();
        for (version, converted) in converted {
            schemas.insert(version, converted.map_err(Failure::Internal)?.map(|typed| typed.schema));
        }
        let mut out = Managers::new();
        for (id, mut owned) in managers {
            let schema = schemas.get(&owned.api_version).and_then(Option::as_ref);
            let Some(schema) = schema else { continue };
            if let Some(set) = typed::reconcile(&owned.set, Type::object(schema)) {
                owned.set = set;
            }
            out.insert(id, owned);
        }
        Ok(out)
    }
}
