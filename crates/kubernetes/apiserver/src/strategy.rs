//! Write strategies: what differs between kinds when objects are written. Built-in kinds use their tables, custom
//! resources their schemas; the rest is common.

use std::borrow::Cow;
use std::collections::HashSet;

use capstan_builtin as builtin;
use capstan_builtin::decode::Words;
use capstan_schema::bounded::Texts;
use capstan_schema::custom::{Decode, ValidationResult, decode};
use capstan_schema::embedded::{self, Coerce};
use capstan_schema::field::FieldErrors;
use capstan_schema::memory::{MAX_DECODED, Undecodable};
use capstan_schema::path::Path;
use capstan_schema::{default, meta, prune};
use serde_json::{Map, Value, json};

use crate::admission::Warnings;
use crate::admission::policy::references;
use crate::blocking;
use crate::call::Call;
use crate::conversion::builtin::BuiltInConversion;
use crate::crd;
use crate::object::Meta;
use crate::registry::{Origin, Resource};
use crate::status::{Result, Status};

/// What deleting an owner does to its dependents by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collector {
    /// They are deleted too.
    DeletesByDefault,
    /// They are orphaned.
    OrphansByDefault,
    /// Owner references are not supported.
    Unsupported,
}

pub(crate) fn collector(resource: &Resource) -> Collector {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("" | "events.k8s.io", "events") => Collector::Unsupported,
        ("", "replicationcontrollers") | ("batch", "jobs") => Collector::OrphansByDefault,
        _ => Collector::DeletesByDefault,
    }
}

pub(crate) fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

pub(crate) fn has_spec_finalizers(object: &Value) -> bool {
    object["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
}

/// Whether DELETE returns the object rather than a `Status`.
pub(crate) fn returns_deleted_object(resource: &Resource) -> bool {
    let built_in = matches!(resource.origin, Origin::BuiltIn);
    built_in
        && matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            (
                "",
                "namespaces"
                    | "pods"
                    | "services"
                    | "serviceaccounts"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "podtemplates"
                    | "resourcequotas"
            ) | ("storage.k8s.io", _)
        )
}

/// Whether PUT may create.
pub(crate) fn allows_create_on_update(resource: &Resource) -> bool {
    matches!(resource.origin, Origin::BuiltIn)
        && builtin::strategy::strategy(&resource.group, &resource.kind).create_on_update
}

/// Whether PUT without a resourceVersion overwrites the current object.
pub(crate) fn allows_unconditional_update(resource: &Resource) -> bool {
    matches!(resource.origin, Origin::BuiltIn)
        && builtin::strategy::strategy(&resource.group, &resource.kind).unconditional_update
}

/// Whether objects are deleted with a grace period: Pods only.
pub(crate) fn has_grace_period(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "pods"
}

/// Default grace period in seconds.
pub(crate) fn grace_period(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !has_grace_period(resource) {
        return 0;
    }
    // A Pod that is not scheduled, or that has ended, is deleted at once.
    let scheduled = object["spec"]["nodeName"].as_str().is_some_and(|n| !n.is_empty());
    let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !scheduled || ended {
        return 0;
    }
    let wanted = asked.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30);
    wanted.max(0)
}

/// Whether an update ends the object: it is being deleted, and no finalizer is left.
pub(crate) fn is_finished(resource: &Resource, object: &Value) -> bool {
    let grace = object.meta().and_then(|m| m.get("deletionGracePeriodSeconds")).and_then(Value::as_i64);
    object.is_terminating()
        && object.finalizers().is_empty()
        && grace.unwrap_or(0) == 0
        && !(is_namespace(resource) && has_spec_finalizers(object))
}

/// Normalises a decoded object to its stored form: known fields only, defaulted. Strict decoding errors are added to
/// `strict`; the error is that of decoding itself.
pub(crate) fn normalise(
    resource: &Resource,
    object: &mut Value,
    strict: &mut Texts,
) -> std::result::Result<(), Undecodable> {
    normalise_with(Words::Decoder, resource, object, strict, MAX_DECODED)
}

/// Normalises the result of an apply. Nulls that the applied configuration sets stay, for validation to reject.
pub(crate) fn normalise_applied(
    resource: &Resource,
    object: &mut Value,
) -> std::result::Result<(), Undecodable> {
    match &resource.origin {
        Origin::Custom(custom) if object["kind"] == *resource.kind => {
            let options =
                Decode { preserve_unknown: custom.preserve_unknown, keep_nulls: true, ..Decode::default() };
            decode(object, &resource.schema, options).map(drop)
        }
        _ => normalise(resource, object, &mut Texts::default()),
    }
}

/// Like [`normalise`], with errors of the given kind and a limit in bytes of what defaults may add.
pub(crate) fn normalise_with(
    words: Words,
    resource: &Resource,
    object: &mut Value,
    strict: &mut Texts,
    memory: usize,
) -> std::result::Result<(), Undecodable> {
    match &resource.origin {
        Origin::BuiltIn => {
            let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
            strict.append(builtin::decode::settle_with(words, group, version, kind, object)?);
            fill_in(resource, object);
        }
        // An object of another kind has no schema here; validation rejects it.
        Origin::Custom(_) if object["kind"] != *resource.kind => {}
        Origin::Custom(custom) => {
            let options = Decode {
                preserve_unknown: custom.preserve_unknown,
                memory: Some(memory),
                ..Decode::default()
            };
            strict.append(decode(object, &resource.schema, options)?.quoted("unknown field"));
        }
    }
    Ok(())
}

/// Defaults a decoded built-in object.
fn fill_in(resource: &Resource, object: &mut Value) {
    builtin::defaults::apply(&resource.group, &resource.version, &resource.kind, object);
    if let Some(conversion) = BuiltInConversion::validated_as_stored(resource) {
        // By way of the other version, whose defaults apply to this one too.
        *object = conversion.to_served(conversion.to_stored(object.take()));
    }
    if crd::is_definition(resource) {
        capstan_schema::crd::default(object);
    }
}

/// [`normalise`] of a built-in object directly from its JSON, in one pass. `None` if the text has any problem: the
/// caller then parses it to report it.
pub(crate) fn normalise_text(resource: &Resource, text: &[u8], max_depth: usize) -> Option<Value> {
    if resource.custom().is_some() || nesting(text) > max_depth {
        return None;
    }
    let id = builtin::table::table().kind(&resource.group, &resource.version, &resource.kind)?;
    let decoded = builtin::decode::from_slice(id, text).ok()?;
    let mut object = decoded.object;
    let as_expected = object["kind"] == *resource.kind && object["apiVersion"] == *resource.api_version();
    if !as_expected || !decoded.strict.is_empty() {
        return None;
    }
    fill_in(resource, &mut object);
    Some(object)
}

/// The strict decoding errors of a body in the order of its text, which a parsed object does not have.
pub(crate) fn strict_errors(resource: &Resource, text: &[u8]) -> Option<Texts> {
    let id = builtin::table::table().kind(&resource.group, &resource.version, &resource.kind)?;
    builtin::decode::from_slice(id, text).ok().map(|decoded| decoded.strict)
}

/// Nesting depth of a JSON text.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Prunes a converted object by its version's schema. It is not defaulted: defaults are those of the storage version,
/// never of the one it is read in.
pub(crate) fn prune(resource: &Resource, object: &mut Value) -> Result<()> {
    let Some(custom) = resource.custom() else { return Ok(()) };
    let schema = &resource.schema;
    let coerce = Coerce { resource_root: true, drop_malformed: true };
    embedded::coerce(object, schema, coerce, &Path::ROOT).map_err(Status::internal)?;
    if !custom.preserve_unknown {
        prune::prune(object, schema);
        default::prune_nulls(object, Some(schema));
    }
    Ok(())
}

/// Removes duplicate owner references.
pub(crate) fn dedup_owners(object: &mut Value, warnings: &Warnings, after_admission: bool) {
    let Some(refs) = object.meta().and_then(|m| m.get("ownerReferences")).and_then(Value::as_array) else {
        return;
    };
    let mut seen = HashSet::with_capacity(refs.len());
    let mut kept: Vec<Value> = Vec::new();
    let mut dropped = Texts::default();
    for reference in refs {
        if seen.insert(reference) {
            kept.push(reference.clone());
        } else {
            dropped.push(reference["uid"].as_str().unwrap_or_default());
        }
    }
    if dropped.is_empty() {
        return;
    }
    let when = if after_admission { " after mutating admission happens" } else { "" };
    warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in \
         1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
         observed: {}",
        dropped.join(", ")
    ));
    object.set_meta("ownerReferences", kept);
}

/// Sets the default of an absent status. Upstream sets it whenever it reads the object; here what is stored is what is
/// read.
fn default_status(call: &Call, object: &mut Value) -> Result<()> {
    let resource = call.resource();
    let schema = &resource.schema;
    let has_default = schema.properties.get("status").is_some_and(|status| status.default.is_some());
    // Objects of other versions are defaulted when they are read.
    if has_default && object.get("status").is_none() && resource.version == resource.storage_version {
        default::apply(object, schema, &call.memory.budget())
            .map_err(|error| Status::bad_request(error.to_string()))?;
    }
    Ok(())
}

/// Completes a new object before validation.
pub(crate) fn prepare_create(call: &Call, object: &mut Value) -> Result<()> {
    match &call.resource().origin {
        Origin::Custom(_) => {
            if has_status(call.resource()) {
                remove(object, "status");
                default_status(call, object)?;
            }
            object.set_meta("generation", 1);
        }
        Origin::BuiltIn => {
            let (group, kind) = (&call.resource().group, &call.resource().kind);
            as_stored(call.resource(), object, |object| {
                builtin::strategy::prepare_create(group, kind, object)
            });
            if kind == "CertificateSigningRequest" {
                let user = &call.user;
                let extra: Vec<(String, Vec<String>)> = user.extra.clone().into_iter().collect();
                builtin::strategy::set_requester(object, &user.name, &user.uid, &user.groups, &extra);
            }
            if crd::is_definition(call.resource()) {
                crd::prepare_create(object);
            }
        }
    }
    Ok(())
}

/// Restores what this request may not change, and increments the generation.
pub(crate) fn prepare_update(call: &Call, object: &mut Value, current: &Value) -> Result<()> {
    let resource = call.resource();
    let subresource = call.subresource();
    set_or_remove(object, "generation", current);
    match &resource.origin {
        Origin::Custom(_) if subresource == "status" => {
            let status = object.get("status").cloned();
            let managed = object.meta().and_then(|m| m.get("managedFields")).cloned();
            let version = object.resource_version().to_owned();
            *object = current.clone();
            match status {
                Some(status) => object["status"] = status,
                None => remove(object, "status"),
            }
            default_status(call, object)?;
            object.set_meta("managedFields", managed.unwrap_or_default());
            object.set_meta("resourceVersion", version);
        }
        Origin::Custom(_) => {
            if has_status(resource) {
                match current.get("status") {
                    Some(status) => object["status"] = status.clone(),
                    None => remove(object, "status"),
                }
            }
            if without_metadata(object) != without_metadata(current) {
                object.set_meta("generation", current.generation().wrapping_add(1));
            }
        }
        Origin::BuiltIn => {
            let (group, kind) = (&resource.group, &resource.kind);
            let stored = stored_form(resource, current);
            as_stored(resource, object, |object| {
                builtin::strategy::prepare_update(group, kind, subresource, object, &stored);
            });
            let now = call.parts.env.now_rfc3339();
            builtin::strategy::stamp_update(group, kind, subresource, object, current, &now);
            if crd::is_definition(resource) {
                crd::prepare_update(object, current, subresource);
            }
        }
    }
    if object.uid().is_empty() {
        object.set_meta("uid", current.uid());
    }
    object.set_meta("creationTimestamp", current.meta_str("creationTimestamp"));
    if current.is_terminating() {
        object.set_meta("deletionTimestamp", current.meta_str("deletionTimestamp"));
    }
    let grace = |o: &Value| o.meta().and_then(|m| m.get("deletionGracePeriodSeconds")).cloned();
    if grace(object).is_none()
        && let Some(seconds) = grace(current)
    {
        object.meta_mut().insert("deletionGracePeriodSeconds".into(), seconds);
    }
    Ok(())
}

pub(crate) fn validate_create(call: &Call, object: &Value) -> Result<()> {
    let resource = call.resource();
    check_escalation(call, "create", object, None)?;
    let result = match &resource.behaviour {
        None => validate_built_in(call, object, None),
        Some(behaviour) => blocking::run_for(object, || behaviour.validator.validate(object)),
    };
    ensure_valid(call, object, result)?;
    refuse(call, object, references::check(call, object, None))?;
    let metadata = &object["metadata"];
    let path = Path::at("metadata");
    refuse(
        call,
        object,
        meta::validate_object_meta(metadata, resource.namespaced, meta::path_segment, &path),
    )?;
    warn_of_finalizers(call, object, None);
    warn_of_fields(call, object, None);
    Ok(())
}

pub(crate) fn validate_update(call: &Call, object: &Value, current: &Value) -> Result<()> {
    let resource = call.resource();
    check_escalation(call, call.verb().as_str(), object, Some(current))?;
    let mut errors = meta::validate_common_update(
        &object["metadata"],
        &current["metadata"],
        resource.namespaced,
        &Path::at("metadata"),
    );
    let mut result = match &resource.behaviour {
        None => validate_built_in(call, object, Some(current)),
        Some(behaviour) => blocking::run_for(object, || match call.subresource() {
            "status" => behaviour.validator.validate_status_update(object, current),
            _ => behaviour.validator.validate_update(object, current),
        }),
    };
    errors.extend(result.errors);
    result.errors = errors;
    ensure_valid(call, object, result)?;
    refuse(call, object, references::check(call, object, Some(current)))?;
    warn_of_finalizers(call, object, Some(current));
    warn_of_fields(call, object, Some(current));
    Ok(())
}

fn check_escalation(call: &Call, verb: &str, object: &Value, current: Option<&Value>) -> Result<()> {
    if call.resource().group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let parts = &call.parts;
    parts.rbac.check_escalation(&*parts.authorizer, &call.attributes(verb), object, current)
}

fn validate_built_in(call: &Call, object: &Value, current: Option<&Value>) -> ValidationResult {
    let resource = call.resource();
    let errors = if crd::is_definition(resource) {
        match current {
            Some(current) if call.subresource() == "status" => {
                capstan_schema::crd::validate_status(object, current)
            }
            // Compiles the rules, and estimates their cost.
            current => blocking::run_for(object, || capstan_schema::crd::validate(object, current)),
        }
    } else {
        let (group, kind) = (&resource.group, &resource.kind);
        let (object, current) = (stored_form(resource, object), current.map(|c| stored_form(resource, c)));
        builtin::validation::validate(group, kind, call.subresource(), &object, current.as_deref())
    };
    ValidationResult { errors, warnings: Texts::default() }
}

/// Applies a change to an object in its validated form.
fn as_stored(resource: &Resource, object: &mut Value, change: impl FnOnce(&mut Value)) {
    match BuiltInConversion::validated_as_stored(resource) {
        None => change(object),
        Some(conversion) => {
            let mut stored = conversion.to_stored(object.take());
            change(&mut stored);
            *object = conversion.to_served(stored);
        }
    }
}

/// An object in its validated form.
fn stored_form<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    match BuiltInConversion::validated_as_stored(resource) {
        None => Cow::Borrowed(object),
        Some(conversion) => Cow::Owned(conversion.to_stored(object.clone())),
    }
}

fn ensure_valid(call: &Call, object: &Value, result: ValidationResult) -> Result<()> {
    result.warnings.into_lines().into_iter().for_each(|text| call.warnings.add(text));
    refuse(call, object, result.errors)
}

fn refuse(call: &Call, object: &Value, errors: FieldErrors) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = object["kind"].as_str().unwrap_or(&call.resource().kind);
    // Of a custom resource, upstream names the group that the object claims.
    let group = match object["apiVersion"].as_str() {
        Some(api_version) if call.resource().custom().is_some() => {
            api_version.split_once('/').map_or("", |(group, _)| group)
        }
        // Events of both groups are one kind, which is validated as that of the core group.
        _ if kind == "Event" => "",
        _ => &call.resource().group,
    };
    Err(Status::invalid(group, kind, object.name(), errors))
}

/// Warns about valid fields of built-in kinds that are probably mistakes.
fn warn_of_fields(call: &Call, object: &Value, current: Option<&Value>) {
    let resource = call.resource();
    if resource.custom().is_none() && call.subresource().is_empty() {
        let all = builtin::warnings::of(&resource.group, &resource.kind, object, current);
        all.into_iter().for_each(|text| call.warnings.add(text));
    }
}

/// Warns about finalizers of custom resources without a domain.
fn warn_of_finalizers(call: &Call, object: &Value, current: Option<&Value>) {
    if call.resource().custom().is_some() {
        let old = current.map(|c| &c["metadata"]);
        meta::finalizer_warnings(&object["metadata"], old)
            .into_lines()
            .into_iter()
            .for_each(|text| call.warnings.add(text));
    }
}

pub(crate) fn has_status(resource: &Resource) -> bool {
    resource.subresources.iter().any(|s| s.name == "status")
}

fn without_metadata(object: &Value) -> Map<String, Value> {
    let mut map = object.as_object().cloned().unwrap_or_default();
    map.remove("metadata");
    map
}

fn remove(object: &mut Value, key: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(key);
    }
}

fn set_or_remove(object: &mut Value, key: &str, current: &Value) {
    let value = current.meta().and_then(|m| m.get(key)).cloned().unwrap_or(json!(null));
    object.set_meta(key, value);
}
