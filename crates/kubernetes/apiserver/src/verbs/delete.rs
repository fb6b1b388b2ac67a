//! DELETE of an object or of a collection: preconditions, finalizers, propagation, grace period.

use std::sync::Arc;

use ::http::StatusCode;
use bytes::Bytes;
use capstan_schema::memory::Undecodable;
use capstan_store::{Entry, Expect, Write};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::admission::Operation;
use crate::call::{Call, unparsed};
use crate::crd;
use crate::digest::Digest;
use crate::http::body::{self, MAX_DEPTH};
use crate::http::options::DeleteOptions;
use crate::negotiation::{self, Encoding, Endpoint};
use crate::object::Meta;
use crate::pipeline;
use crate::services;
use crate::status::{Result, Status};
use crate::strategy::{self, Collector};
use crate::verbs::list;
use crate::verbs::{Answer, ListAnswer};

/// Finalizer for which the garbage collector orphans dependents.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer for which the garbage collector deletes dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Result of a deletion.
pub(crate) enum Deleted {
    /// Deleted, with the last state.
    Gone(Value),
    /// Waiting for finalizers or a grace period, with the current state.
    Pending(Value),
}

/// Deletes the object in the path.
pub(crate) async fn delete(call: &Call, body: &Bytes) -> Result<Answer> {
    let options = options(call, body, DeleteOptions::from_body)?;
    warn_of_orphans(call, &options);
    let deleted = delete_object(call, &call.key(), &options).await?;
    Ok(match deleted {
        Deleted::Pending(object) => {
            let foreground = options.orphan_dependents == Some(false);
            let code = if foreground { StatusCode::ACCEPTED } else { StatusCode::OK };
            Answer::object(code, &object)
        }
        Deleted::Gone(object) if strategy::returns_deleted_object(call.resource()) => {
            Answer::object(StatusCode::OK, &object)
        }
        Deleted::Gone(object) => Answer::Plain { code: StatusCode::OK, value: success(call, &object) },
    })
}

/// Deletes everything that the selectors match.
pub(crate) async fn delete_collection(call: &Call, body: &Bytes) -> Result<Answer> {
    let list_options = call.query.list_options(false)?;
    let options = options(call, body, DeleteOptions::of_collection)?;
    let page = list::select(call, &list_options)?;
    let mut items = Vec::with_capacity(page.entries.len());
    for entry in &page.entries {
        match delete_object(call, &entry.key, &options).await {
            Ok(_) => items.push(call.render(entry).await?),
            // Deleted by another request meanwhile.
            Err(status) if status.reason == "NotFound" => {}
            Err(status) => return Err(status),
        }
    }
    Ok(Answer::List(ListAnswer {
        items,
        resource_version: page.revision,
        continue_token: page.continue_token,
        remaining: page.remaining,
    }))
}

/// Pods of a Job outlive it unless the client says otherwise, which surprises.
fn warn_of_orphans(call: &Call, options: &DeleteOptions) {
    let resource = call.resource();
    let chosen = options.propagation.is_some() || options.orphan_dependents.is_some();
    if resource.group == "batch" && resource.plural == "jobs" && !chosen {
        call.warnings.add(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning",
        );
    }
}

fn options(call: &Call, body: &Bytes, read: fn(&Value) -> Result<DeleteOptions>) -> Result<DeleteOptions> {
    if body.is_empty() {
        return call.query.delete_options();
    }
    // Options are a built-in kind, also for custom resources.
    let encoding = negotiation::body(call.content_type.as_deref(), Endpoint::BuiltIn)?;
    let parsed = match encoding {
        Encoding::Protobuf => capstan_builtin::protobuf::decode(body).map_err(Undecodable::from),
        Encoding::Json => body::json(body, MAX_DEPTH, call.memory.left()).map(|decoded| decoded.value),
        Encoding::Yaml => body::yaml(body, MAX_DEPTH, call.memory.left()).map(|decoded| decoded.value),
    };
    let parsed = parsed
        .map_err(|error| Status::undecodable(error, |why| Status::bad_request(unparsed(encoding, &why))))?;
    read(&parsed)
}

/// Deletes one object, with retries on conflicts. Boxed: otherwise the controllers of every idle server in a process
/// would each reserve space for its state.
pub(crate) fn delete_object<'a>(
    call: &'a Call,
    key: &'a str,
    options: &'a DeleteOptions,
) -> BoxFuture<'a, Result<Deleted>> {
    Box::pin(try_until_deleted(call, key, options))
}

async fn try_until_deleted(call: &Call, key: &str, options: &DeleteOptions) -> Result<Deleted> {
    loop {
        let Some(entry) = call.parts.store.get(&call.resource().bucket, key) else {
            let name = key.rsplit('/').next().unwrap_or(key);
            return Err(Status::not_found(&call.resource().group, &call.resource().plural, name));
        };
        if let Some(deleted) = attempt(call, &entry, options).await? {
            return Ok(deleted);
        }
    }
}

async fn attempt(
    call: &Call,
    entry: &Arc<Entry<Digest>>,
    options: &DeleteOptions,
) -> Result<Option<Deleted>> {
    let current = Arc::new(call.load(entry).await?);
    check_preconditions(call, &current, options)?;
    let attributes = {
        let mut attributes = call.admission(
            Operation::Delete,
            None,
            Some(current.clone()),
            options.to_json(),
            options.dry_run,
        );
        attributes.name = current.name().to_owned();
        if call.resource().namespaced {
            attributes.namespace = current.namespace().to_owned();
        }
        attributes
    };
    pipeline::admit_delete(call, attributes).await?;

    let mut object = (*current).clone();
    let now = call.parts.env.now_rfc3339();
    let grace = strategy::grace_period(call.resource(), &object, options.grace_period_seconds);
    let mut finalizers = finalizers_after_delete(call, &object, options);
    if crd::is_definition(call.resource()) && !object.is_terminating() {
        // A definition stays until its objects are gone.
        crd::mark_for_deletion(&mut object, &now);
        if !finalizers.iter().any(|f| f == crd::CLEANUP_FINALIZER) {
            finalizers.push(crd::CLEANUP_FINALIZER.into());
        }
    }
    let is_namespace = strategy::is_namespace(call.resource());
    let waits = !finalizers.is_empty()
        || grace > 0
        || (is_namespace && (!object.is_terminating() || strategy::has_spec_finalizers(&object)));

    if !waits {
        if strategy::has_grace_period(call.resource()) && !object.is_terminating() {
            // As upstream, the last state of a Pod that is gone at once is that of a deleted one.
            object.set_meta("deletionTimestamp", now);
            object.set_meta("generation", object.generation() + 1);
        }
        if strategy::has_grace_period(call.resource()) {
            object.meta_mut().insert("deletionGracePeriodSeconds".into(), 0.into());
        }
        return finish(call, entry, object, options.dry_run).await;
    }
    if is_namespace {
        if !object.is_terminating() {
            object.set_meta("deletionTimestamp", now);
            object["status"]["phase"] = "Terminating".into();
        }
        object.set_meta("finalizers", json!(finalizers));
    } else {
        if grace > 0 && object.is_terminating() {
            let left = object.meta().and_then(|m| m.get("deletionGracePeriodSeconds")?.as_i64()).unwrap_or(0);
            if grace >= left {
                return Ok(Some(Deleted::Pending(object)));
            }
        }
        if !object.is_terminating() && object.generation() > 0 {
            let generation = object.generation() + 1;
            object.set_meta("generation", generation);
        }
        if grace > 0 {
            let at = call.parts.env.now() + jiff::SignedDuration::from_secs(grace);
            object.set_meta("deletionTimestamp", at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        } else if !object.is_terminating() {
            object.set_meta("deletionTimestamp", now);
        }
        object.meta_mut().insert("deletionGracePeriodSeconds".into(), grace.into());
        object.set_meta("finalizers", json!(finalizers));
    }
    if object == *current || options.dry_run {
        return Ok(Some(Deleted::Pending(object)));
    }
    let put = |value| Write::Put {
        bucket: call.resource().bucket.clone(),
        key: entry.key.clone(),
        value,
        expect: Expect::Revision(entry.revision),
    };
    match call.commit(object.clone(), put).await {
        Ok(written) => {
            object.set_meta("resourceVersion", written.revision.to_string());
            Ok(Some(Deleted::Pending(object)))
        }
        Err(status) if status.reason == "Conflict" => Ok(None),
        Err(status) => Err(status),
    }
}

/// Removes the object from the store.
async fn finish(
    call: &Call,
    entry: &Arc<Entry<Digest>>,
    mut object: Value,
    dry_run: bool,
) -> Result<Option<Deleted>> {
    if dry_run {
        return Ok(Some(Deleted::Gone(object)));
    }
    let remove = |last| Write::Delete {
        bucket: call.resource().bucket.clone(),
        key: entry.key.clone(),
        last,
        expect: Expect::Revision(entry.revision),
    };
    match call.commit(object.clone(), remove).await {
        Ok(written) => {
            services::after_delete(call, &object).await;
            object.set_meta("resourceVersion", written.revision.to_string());
            Ok(Some(Deleted::Gone(object)))
        }
        Err(status) if status.reason == "Conflict" => Ok(None),
        Err(status) => Err(status),
    }
}

fn check_preconditions(call: &Call, object: &Value, options: &DeleteOptions) -> Result<()> {
    let kind = if strategy::is_namespace(call.resource()) { "namespaces" } else { &call.resource().kind };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object.uid()) {
        return Err(Status::conflict(
            &call.resource().group,
            kind,
            object.name(),
            format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). \
                 The object might have been deleted and then recreated",
                object.uid()
            ),
        ));
    }
    if let Some(version) = options.resource_version.as_deref().filter(|v| *v != object.resource_version()) {
        return Err(Status::conflict(
            &call.resource().group,
            kind,
            object.name(),
            format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in \
                 record ({}). The object might have been modified",
                object.resource_version()
            ),
        ));
    }
    Ok(())
}

fn finalizers_after_delete(call: &Call, object: &Value, options: &DeleteOptions) -> Vec<String> {
    let present = object.finalizers();
    let has = |finalizer: &str| present.iter().any(|f| f == finalizer);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation.as_deref()) {
        (Some(orphan), _) => (orphan, !orphan && has(FOREGROUND)),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) if has(ORPHAN) => (true, false),
        (None, None) if has(FOREGROUND) => (false, true),
        (None, None) => (strategy::collector(call.resource()) == Collector::OrphansByDefault, false),
    };
    if strategy::collector(call.resource()) == Collector::Unsupported {
        return present;
    }
    let mut finalizers: Vec<String> =
        present.into_iter().filter(|f| f != ORPHAN && f != FOREGROUND).collect();
    if orphan {
        finalizers.push(ORPHAN.into());
    }
    if foreground {
        finalizers.push(FOREGROUND.into());
    }
    finalizers
}

/// The `Status` of a completed deletion.
fn success(call: &Call, object: &Value) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), object.name().into());
    if !call.resource().group.is_empty() {
        details.insert("group".into(), call.resource().group.as_str().into());
    }
    details.insert("kind".into(), call.resource().plural.as_str().into());
    details.insert("uid".into(), object.uid().into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
