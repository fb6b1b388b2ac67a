//! Server-side apply and field ownership (`metadata.managedFields`).
//!
//! ```text
//!   request ─► Ownership::update / Ownership::apply ─► object with managedFields
//!                     │
//!                     ├─ managed     entries ⇄ owners and their field sets
//!                     ├─ updater     who takes, loses and keeps fields
//!                     ├─ typed       values through a schema: validate, compare, merge, remove
//!                     └─ fieldpath   paths, sets of paths, FieldsV1
//! ```
//!
//! # How the API server calls it
//!
//! All objects are in the version of the request, defaulted, with `apiVersion` and `kind`. The live
//! object carries its stored `managedFields`. Objects of built-in kinds are as Go writes them: structs by
//! value are there even when empty (`resources: {}`), fields with `omitempty` are not. `now` is whole seconds of RFC 3339. Order per request:
//!
//! * **create**: [`Ownership::update`] with [`Ownership::empty_object`] as the live
//!   object, after decoding and
//!   defaulting and *before* mutating admission and the strategy's resets.
//! * **update** and the **JSON, merge and strategic patches**: [`Ownership::update`] with the stored
//!   object as the live one and the decoded, defaulted result as the new one, before mutating admission.
//!   For an update that creates, as create.
//! * **apply**: [`Ownership::apply`] with the stored object, or [`Ownership::empty_object`] when there is
//!   none; default the result, then go on as an update or create (mutating admission, resets, validation).
//!   When the outcome is what is stored already, nothing is written.
//! * **after resets on every update** (all verbs): [`keep_times`], so that a write that changes nothing
//!   keeps its old times and is not stored.
//! * **after mutating admission**: if [`check_entries`] finds the entries broken, put back those from
//!   before admission and warn.
//! * **status**: subresource `status`; entries in the request are ignored, as for all subresources.
//!   `reset` names what the strategy resets: `status` on the main resource when the kind has a status
//!   subresource; `metadata` and `spec` on the status of a custom resource.
//! * **scale**: see [`scale`].
//!
//! The name of the manager is [`manager_name`], checked with
//! [`validate_field_manager`](crate::meta::validate_field_manager); for apply it is required and never
//! taken from the user agent.
//!
//! Entries written in a version that is no longer served are dropped. For custom resources upstream
//! instead forgets all entries on update and refuses to apply.

pub mod fieldpath;
pub mod scale;
pub mod typed;

mod conflict;
mod last_applied;
mod managed;
mod metadata;
mod ownership;
#[cfg(test)]
mod tests;
mod times;
mod updater;

use std::sync::Arc;

use serde_json::{Value, json};

pub use conflict::{Cause, Conflict, Conflicts};
pub use fieldpath::Set;
pub use managed::{Entry, MAX_MANAGER_LENGTH, Managed, ManagerId, Operation, Owned, entries, manager_name};
pub use metadata::schema as metadata_schema;
pub use ownership::Ownership;
pub use times::keep_times;

use crate::Schema;

/// The API versions of a kind.
pub trait Versions {
    /// The schema of an API version (`apps/v1`); `None` if it does not exist (any more).
    fn schema(&self, api_version: &str) -> Option<Arc<Schema>>;

    /// Converts the object to another version.
    ///
    /// # Errors
    /// Why the conversion failed.
    fn convert(&self, object: &Value, to: &str) -> Result<Value, String>;

    /// The live object of a create. For custom resources it only has its type. For built-in kinds it is the JSON of
    /// Go's zero struct: `spec: {}` is present, so that creating an object does not own `spec` itself, only its
    /// content.
    fn empty(&self, api_version: &str, kind: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind})
    }
}

/// Why an apply failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Response 400, reason `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// Response 409, reason `Conflict`, with the conflicts as causes.
    #[error("{}", .0.message())]
    Conflict(Conflicts),
    /// Response 500 without a reason. Upstream does not distinguish a configuration that does not match the schema
    /// from internal errors.
    #[error("{0}")]
    Internal(String),
}

/// The internal error. Conflicts may still be allowed by the caller.
type Failure = ApplyError;

/// Checks the `managedFields` of an object.
///
/// # Errors
/// Upstream's text, for the warning after admission.
pub fn check_entries(object: &Value) -> Result<(), String> {
    Managed::decode(&entries(object).unwrap_or_default()).map(|_| ())
}
