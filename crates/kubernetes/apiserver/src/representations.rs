//! Conversions of the objects of a request, for webhooks and policies that need another version.

use std::sync::Arc;

use capstan_builtin::decode::Words;
use capstan_schema::Schema;
use capstan_schema::bounded::Texts;
use capstan_schema::field::{FieldError, FieldErrors};
use capstan_schema::memory::{MemoryBudget, Undecodable};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::{GroupVersionKind, GroupVersionResource, Representations};
use crate::call::Call;
use crate::object;
use crate::registry::Resource;
use crate::scale;
use crate::status::{Result, Status};
use crate::strategy;

pub(crate) struct RequestRepresentations<'a> {
    pub call: &'a Call,
}

impl Representations for RequestRepresentations<'_> {
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let registry = &self.call.registry;
        let Some(group) = registry.groups.iter().find(|g| g.name == resource.group) else {
            return Vec::new();
        };
        let versions = group.versions.iter();
        versions
            .filter_map(|version| registry.find(&resource.group, version, &resource.resource))
            .filter_map(|other| {
                let kind = if subresource.is_empty() {
                    GroupVersionKind::new(other.group.as_str(), other.version.as_str(), other.kind.as_str())
                } else {
                    let sub = other.subresources.iter().find(|s| s.name == subresource)?;
                    GroupVersionKind::new(sub.group.as_str(), sub.version.as_str(), sub.kind.as_str())
                };
                let path = GroupVersionResource::new(
                    other.group.as_str(),
                    other.version.as_str(),
                    other.plural.as_str(),
                );
                Some((path, kind))
            })
            .collect()
    }

    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move { self.call.parts.convert(self.call.resource(), object, &to.version).await })
    }

    fn memory(&self) -> MemoryBudget {
        self.call.memory.budget()
    }

    fn normalise(&self, object: Value, kind: &GroupVersionKind) -> Result<Value> {
        self.decoded(object, kind, &mut Texts::default(), |why| {
            Status::internal(format!("a patch of admission is not a {}: {why}", kind.kind))
        })
    }

    fn normalise_strictly(&self, object: Value, kind: &GroupVersionKind) -> Result<Value> {
        let mut strict = Texts::default();
        let object = self.decoded(object, kind, &mut strict, Status::internal)?;
        if strict.is_empty() || self.call.resource().custom().is_some() {
            return Ok(object);
        }
        Err(Status::internal(format!("strict decoding error: {}", strict.join(", "))))
    }

    fn schema(&self, kind: &GroupVersionKind) -> Option<Arc<Schema>> {
        if self.call.subresource() == scale::NAME {
            return scale::schema();
        }
        let plural = &self.call.resource().plural;
        let resource = self.call.registry.find(&kind.group, &kind.version, plural)?;
        (resource.kind == kind.kind).then(|| resource.schema.clone())
    }

    fn is_namespaced(&self, kind: &GroupVersionKind) -> Option<bool> {
        self.resource_of(kind).map(|resource| resource.namespaced)
    }

    fn objects<'a>(
        &'a self,
        kind: &'a GroupVersionKind,
        namespace: &'a str,
        name: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Value>>> {
        Box::pin(async move {
            let Some(resource) = self.resource_of(kind) else { return Ok(Vec::new()) };
            let parts = &self.call.parts;
            let entries: Vec<_> = match name {
                Some(name) => {
                    parts.store.get(&resource.bucket, &object::key(namespace, name)).into_iter().collect()
                }
                None => {
                    let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
                    let snapshot = parts.store.snapshot(&resource.bucket);
                    snapshot.range(&prefix, None).cloned().collect()
                }
            };
            let mut objects = Vec::with_capacity(entries.len());
            for entry in entries {
                let stored = serde_json::from_slice(&entry.value)
                    .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
                objects.push(parts.in_version(resource, stored, &entry).await?);
            }
            Ok(objects)
        })
    }
}

impl RequestRepresentations<'_> {
    /// A patched object as a body of its kind. Strict decoding errors are collected.
    fn decoded(
        &self,
        mut object: Value,
        kind: &GroupVersionKind,
        strict: &mut Texts,
        no_object: impl Fn(Undecodable) -> Status,
    ) -> Result<Value> {
        self.expect_kind(&object, kind)?;
        if self.call.subresource() == scale::NAME {
            strict.append(scale::normalise(Words::Decoder, &mut object).map_err(no_object)?);
            return Ok(object);
        }
        let plural = &self.call.resource().plural;
        if let Some(resource) = self.call.registry.find(&kind.group, &kind.version, plural)
            && resource.kind == kind.kind
        {
            strategy::normalise(resource, &mut object, strict).map_err(no_object)?;
        }
        Ok(object)
    }

    /// The served resource of a kind.
    fn resource_of(&self, kind: &GroupVersionKind) -> Option<&Arc<Resource>> {
        let resources = self.call.registry.resources.get(&(kind.group.clone(), kind.version.clone()))?;
        resources.iter().find(|resource| resource.kind == kind.kind)
    }
}

impl RequestRepresentations<'_> {
    /// Rejects an object whose kind was changed by a patch, as upstream: with a conversion error for Go types, as
    /// invalid for custom resources.
    fn expect_kind(&self, object: &Value, kind: &GroupVersionKind) -> Result<()> {
        let found = GroupVersionKind::of(object);
        if found == *kind {
            return Ok(());
        }
        if self.call.resource().custom().is_none() || self.call.subresource() == scale::NAME {
            let package = match kind.group.split('.').next() {
                None | Some("") => "core",
                Some(package) => package,
            };
            return Err(Status::bad_request(format!(
                "converting ({}.{}) to ({package}.{}): unknown conversion",
                found.version, found.kind, kind.kind
            )));
        }
        let mut errors = FieldErrors::new();
        if found.kind != kind.kind {
            errors.push(FieldError::invalid("kind", found.kind.as_str(), format!("must be {}", kind.kind)));
        }
        if found.api_version() != kind.api_version() {
            let detail = format!("must be {}", kind.api_version());
            errors.push(FieldError::invalid("apiVersion", found.api_version(), detail));
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Status::invalid(&kind.group, &kind.kind, name, errors))
    }
}
