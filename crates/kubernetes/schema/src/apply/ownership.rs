//! The entry points: writes and their effect on field ownership.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::conflict::Conflicts;
use super::fieldpath::Set;
use super::managed::{self, Entry, Managed, ManagerId, Operation, Owned};
use super::typed::{self, Duplicates, Type};
use super::updater::Updater;
use super::{ApplyError, Versions, last_applied};
use crate::Schema;

/// Most update entries. Beyond it the oldest are merged.
const MAX_UPDATE_ENTRIES: usize = 10;

/// Fields that are never owned.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Field ownership for one endpoint of a kind in one version.
#[derive(Clone, Copy)]
pub struct Ownership<'a> {
    /// The API versions of the kind.
    pub versions: &'a dyn Versions,
    /// API version of the request, for example `apps/v1`.
    pub api_version: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Subresource of the request, or empty.
    pub subresource: &'a str,
    /// Fields that writes through this endpoint do not change, in all versions.
    pub reset: &'a Set,
}

impl<'a> Ownership<'a> {
    /// The new object with the `managedFields` that result from replacing the live one. Never fails: if the entries
    /// or the shape of either object are invalid, the new one has no `managedFields`.
    pub fn update(&self, live: &Value, mut new: Value, manager: &str, now: &str) -> Value {
        let managed = self.managed_of(live, &new);
        managed::clear(&mut new);
        let has_uid = live["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty());
        // Once the owners of an object were reset, updates do not track them until the next apply.
        if managed.fields.is_empty() && has_uid {
            return new;
        }
        if let Ok(managed) = self.track(live, &new, managed, manager, now) {
            managed.encode(&mut new);
        }
        new
    }

    /// The live object with a configuration applied, and its `managedFields`. The result needs defaulting; removed
    /// fields may leave nulls behind, as upstream.
    ///
    /// # Errors
    /// [`ApplyError`]; conflicts only without `force`.
    pub fn apply(
        &self,
        live: &Value,
        applied: &Value,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<Value, ApplyError> {
        let entries = managed::entries(live).unwrap_or_default();
        let managed = Managed::decode(&entries)
            .map_err(|e| ApplyError::Internal(format!("failed to decode managed fields: {e}")))?;
        self.check_type(applied)?;
        let mut result = self.merge(live, applied, managed.clone(), manager, force, now);
        if manager == last_applied::MANAGER
            && let Err(ApplyError::Conflict(conflicts)) = &result
            && let Some(own) = last_applied::owned(live, self.api_version, &*self.schema()?)
        {
            let others: Vec<_> = conflicts.0.iter().filter(|c| !own.has(&c.path)).cloned().collect();
            result = if others.is_empty() {
                self.merge(live, applied, managed, manager, true, now)
            } else {
                Err(ApplyError::Conflict(Conflicts(others)))
            };
        }
        let (mut object, managed) = result?;
        if manager == last_applied::MANAGER {
            last_applied::refresh(&mut object, applied);
        }
        managed.encode(&mut object);
        Ok(object)
    }

    /// The live object of a write that creates.
    pub fn empty_object(&self) -> Value {
        self.versions.empty(self.api_version, self.kind)
    }

    fn schema(&self) -> Result<Arc<Schema>, ApplyError> {
        self.versions
            .schema(self.api_version)
            .ok_or_else(|| ApplyError::Internal(format!("no corresponding type for {}", self.type_text())))
    }

    fn type_text(&self) -> String {
        type_text(self.api_version, self.kind)
    }

    fn id(&self, manager: &str, operation: Operation) -> ManagerId {
        let name = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(name, operation, self.api_version, self.subresource)
    }

    fn updater(&self) -> Result<Updater<'a>, ApplyError> {
        Ok(Updater {
            versions: self.versions,
            schema: self.schema()?,
            api_version: self.api_version,
            reset: self.reset,
        })
    }

    /// The owners that a write starts from: those of the request, if they are valid and the request may set them.
    fn managed_of(&self, live: &Value, new: &Value) -> Managed {
        let decode = |entries: Option<Vec<Entry>>| Managed::decode(&entries.unwrap_or_default());
        if self.subresource.is_empty() {
            let sent = managed::entries(new);
            if managed::is_reset(sent.as_deref()) {
                return Managed::default();
            }
            if let Ok(managed) = decode(sent)
                && !managed.fields.is_empty()
            {
                return managed;
            }
        }
        decode(managed::entries(live)).unwrap_or_default()
    }

    /// Owners after an update.
    fn track(
        &self,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        manager: &str,
        now: &str,
    ) -> Result<Managed, ApplyError> {
        // The status of a custom resource may be sent under the name of another kind.
        if new.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != self.kind) {
            let object = self.name_text(new);
            return Err(ApplyError::Internal(format!("no corresponding type for new object ({object})")));
        }
        let updater = self.updater()?;
        let of = Type::object(&updater.schema);
        for (name, object) in [("new", new), ("live", live)] {
            typed::validate(object, of, Duplicates::Allowed).map_err(|e| {
                let object = self.name_text(object);
                ApplyError::Internal(format!("failed to convert {name} object ({object}) to smd typed: {e}"))
            })?;
        }
        let (mut fields, taken) = updater.update(live, new, std::mem::take(&mut managed.fields))?;
        let taken = taken.difference(&UNOWNED);
        if !taken.is_empty() {
            let id = self.id(manager, Operation::Update);
            let set = fields.get(&id).map_or_else(|| taken.clone(), |previous| taken.union(&previous.set));
            fields
                .insert(id.clone(), Owned { set, api_version: self.api_version.to_owned(), applied: false });
            managed.times.insert(id, now.to_owned());
        }
        managed.fields = fields;
        merge_oldest(&mut managed);
        Ok(managed)
    }

    fn check_type(&self, applied: &Value) -> Result<(), ApplyError> {
        let text = |name| applied.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != self.api_version || kind != self.kind {
            return Err(ApplyError::BadRequest(format!(
                "invalid object type: {}",
                type_text(api_version, kind)
            )));
        }
        Ok(())
    }

    /// The merged object without entries, and its owners.
    fn merge(
        &self,
        live: &Value,
        applied: &Value,
        mut managed: Managed,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<(Value, Managed), ApplyError> {
        let mut live = live.clone();
        managed::clear(&mut live);
        if managed.fields.is_empty() {
            // Existing fields belong to an unknown manager.
            let empty = self.empty_object();
            managed = self.track(&empty, &live, managed, "before-first-apply", now).map_err(|e| {
                ApplyError::Internal(format!("failed to create manager for existing fields: {e}"))
            })?;
        }
        if managed::entries(applied).is_some() {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let updater = self.updater()?;
        let of = Type::object(&updater.schema);
        let typed = |object: &Value, what: &str, duplicates| {
            typed::validate(object, of, duplicates).map_err(|e| {
                ApplyError::Internal(format!(
                    "failed to create typed {what} object ({}): {e}",
                    self.name_text(object)
                ))
            })
        };
        typed(applied, "patch", Duplicates::Refused)?;
        typed(&live, "live", Duplicates::Allowed)?;
        let id = self.id(manager, Operation::Apply);
        let (new, mut fields) =
            updater.apply(&live, applied, std::mem::take(&mut managed.fields), &id, force)?;
        if let Some(owned) = fields.get_mut(&id) {
            owned.set = owned.set.difference(&UNOWNED);
            if owned.set.is_empty() {
                fields.remove(&id);
            }
        }
        managed.fields = fields;
        // As upstream, a manager that joins without changing anything has no time.
        if new.is_some() {
            managed.times.insert(id, now.to_owned());
        }
        Ok((new.unwrap_or(live), managed))
    }

    fn name_text(&self, object: &Value) -> String {
        let text = |name: &str| {
            object.get("metadata").and_then(|m| m.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        format!("{}/{}; {}", text("namespace"), text("name"), self.type_text())
    }
}

/// A type as Go formats it: `apps/v1, Kind=Deployment`, `/v1, Kind=ConfigMap`.
fn type_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Merges the oldest update entries, per version, down to the limit.
fn merge_oldest(managed: &mut Managed) {
    let mut updaters: Vec<ManagerId> =
        managed.fields.iter().filter(|(_, owned)| !owned.applied).map(|(id, _)| id.clone()).collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATE_ENTRIES {
        return;
    }
    updaters
        .sort_by_cached_key(|id| (managed::seconds(managed.times.get(id).map(String::as_str)), id.clone()));
    let mut first_of: BTreeMap<String, ManagerId> = BTreeMap::new();
    for id in updaters {
        if count <= MAX_UPDATE_ENTRIES {
            break;
        }
        let Some(version) = managed.fields.get(&id).map(|owned| owned.api_version.clone()) else { continue };
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new("ancient-changes", Operation::Update, &version, "");
        if !managed.fields.contains_key(&bucket)
            && let Some(owned) = managed.fields.remove(first)
        {
            managed.fields.insert(bucket.clone(), owned);
        }
        if let (Some(owned), Some(older)) = (managed.fields.get(&id), managed.fields.get(&bucket)) {
            let merged = Owned { set: owned.set.union(&older.set), ..owned.clone() };
            managed.fields.insert(bucket.clone(), merged);
        }
        managed.fields.remove(&id);
        count -= 1;
        match managed.times.get(&id).cloned() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
}
