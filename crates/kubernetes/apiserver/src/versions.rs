//! Conversion between the storage version and the version of a request.
//!
//! ```text
//! entry ── defaulted as stored ──► converted ──► pruned ──► bytes, cached on the entry
//! object ── converted to the storage version ──► pruned ──► to be committed
//! ```

use std::sync::Arc;

use bytes::Bytes;
use capstan_schema::bounded::Texts;
use capstan_store::Entry;
use serde_json::Value;

use crate::admission::GroupVersionKind;
use crate::call::Call;
use crate::conversion::builtin::{self, BuiltInConversion};
use crate::digest::Digest;
use crate::parts::ServerParts;
use crate::registry::{CustomResource, Origin, Resource};
use crate::status::{Result, Status};
use crate::strategy;

impl Call {
    /// The object of an entry in the version of the request, pruned and defaulted by its schema.
    pub async fn load(&self, entry: &Entry<Digest>) -> Result<Value> {
        let value: Value = serde_json::from_slice(&entry.value)
            .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
        self.parts.in_version(self.resource(), value, entry).await
    }

    /// The bytes of an entry in the version of the request.
    pub async fn render(&self, entry: &Arc<Entry<Digest>>) -> Result<Bytes> {
        if let Some(bytes) = ready(self.resource(), entry) {
            return Ok(bytes);
        }
        let value = self.load(entry).await?;
        Ok(remember(self.resource(), entry, &value))
    }

    /// Like [`Call::render`] for many entries, with one conversion call.
    pub async fn render_all(&self, entries: &[Arc<Entry<Digest>>]) -> Result<Vec<Bytes>> {
        let mut rendered: Vec<Option<Bytes>> = entries.iter().map(|e| ready(self.resource(), e)).collect();
        let open: Vec<usize> = (0..entries.len()).filter(|i| rendered[*i].is_none()).collect();
        let foreign = self.resource().behaviour.as_ref().filter(|_| {
            open.iter().any(|i| *entries[*i].digest().api_version != *self.resource().api_version())
        });
        if let Some(behaviour) = foreign {
            let mut values = Vec::with_capacity(open.len());
            for i in &open {
                let mut value: Value = serde_json::from_slice(&entries[*i].value)
                    .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
                self.parts.normalise_as_stored(self.resource(), &mut value)?;
                values.push(value);
            }
            let list = GroupVersionKind::new(
                self.resource().group.as_str(),
                self.resource().version.as_str(),
                self.resource().list_kind.as_str(),
            );
            let version = &self.resource().version;
            let converted =
                self.parts.conversions.convert_list(&behaviour.conversion, values, version, &list).await?;
            for (i, mut value) in open.into_iter().zip(converted) {
                strategy::prune(self.resource(), &mut value)?;
                rendered[i] = Some(remember(self.resource(), &entries[i], &value));
            }
        } else {
            for i in open {
                rendered[i] = Some(self.render(&entries[i]).await?);
            }
        }
        Ok(rendered.into_iter().flatten().collect())
    }

    /// Bytes of an object, such as the last state of a deleted one, in the version of the request.
    pub async fn render_bytes(&self, entry: &Entry<Digest>, bytes: Bytes) -> Result<Bytes> {
        let as_stored = match &self.resource().origin {
            Origin::BuiltIn => BuiltInConversion::of(self.resource()).is_none(),
            Origin::Custom(_) => *entry.digest().api_version == *self.resource().api_version(),
        };
        if as_stored {
            return Ok(bytes);
        }
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
        let value = self.parts.in_version(self.resource(), value, entry).await?;
        Ok(capstan_builtin::text::to_vec(&value).into())
    }
}

impl ServerParts {
    /// Converts an object of a custom resource.
    pub async fn convert(&self, resource: &Resource, object: Value, version: &str) -> Result<Value> {
        match &resource.behaviour {
            Some(behaviour) => Ok(self.conversions.convert(&behaviour.conversion, object, version).await?),
            None => Ok(builtin::in_version(object, version)),
        }
    }

    pub async fn in_version(
        &self,
        resource: &Resource,
        value: Value,
        entry: &Entry<Digest>,
    ) -> Result<Value> {
        match &resource.origin {
            Origin::BuiltIn => Ok(match BuiltInConversion::of(resource) {
                Some(conversion) => conversion.to_served(value),
                None => value,
            }),
            Origin::Custom(custom) => {
                let stored_here = *entry.digest().api_version == *resource.api_version();
                if stored_here && is_current(entry, custom) {
                    return Ok(value);
                }
                if !stored_here {
                    return self.read_back(resource, value).await;
                }
                let mut settled = value.clone();
                strategy::normalise(resource, &mut settled, &mut Texts::default())
                    .map_err(Status::internal)?;
                if settled == value {
                    entry.digest().mark_current(custom.schema_epoch);
                }
                Ok(settled)
            }
        }
    }

    /// Converts a stored object to another version: defaulted as stored, converted, pruned.
    pub async fn read_back(&self, resource: &Resource, mut stored: Value) -> Result<Value> {
        self.normalise_as_stored(resource, &mut stored)?;
        let mut value = self.convert(resource, stored, &resource.version).await?;
        strategy::prune(resource, &mut value)?;
        Ok(value)
    }

    fn normalise_as_stored(&self, resource: &Resource, stored: &mut Value) -> Result<()> {
        let registry = self.registry.load();
        let version = stored["apiVersion"].as_str().and_then(|v| v.rsplit('/').next()).unwrap_or_default();
        match registry.find(&resource.group, version, &resource.plural) {
            Some(storage) => {
                strategy::normalise(storage, stored, &mut Texts::default()).map_err(Status::internal)
            }
            None => Ok(()),
        }
    }

    /// Converts an object of a request to its stored form.
    pub async fn storage_form(&self, resource: &Resource, object: Value) -> Result<Value> {
        match &resource.origin {
            Origin::BuiltIn => Ok(match BuiltInConversion::of(resource) {
                Some(conversion) => conversion.to_stored(object),
                None => object,
            }),
            Origin::Custom(_) if resource.version != resource.storage_version => {
                let mut stored = self.convert(resource, object, &resource.storage_version).await?;
                // Fields that the storage version does not have are lost here, not when the object is read.
                let registry = self.registry.load();
                let (group, version) = (&resource.group, &resource.storage_version);
                if let Some(storage) = registry.find(group, version, &resource.plural) {
                    strategy::prune(storage, &mut stored)?;
                }
                Ok(stored)
            }
            _ => Ok(object),
        }
    }
}

/// The bytes of a rendered object, cached on its entry.
fn remember(resource: &Resource, entry: &Entry<Digest>, value: &Value) -> Bytes {
    let Some(custom) = resource.custom() else {
        return capstan_builtin::text::to_vec(value).into();
    };
    if is_current(entry, custom) && *entry.digest().api_version == *resource.api_version() {
        return entry.value.clone();
    }
    let bytes: Bytes = value.to_string().into();
    entry.digest().set_rendering(&resource.version, custom.schema_epoch, bytes.clone());
    bytes
}

/// Whether the stored bytes are pruned and defaulted by the current schema.
fn is_current(entry: &Entry<Digest>, custom: &CustomResource) -> bool {
    entry.mark == custom.schema_epoch || entry.digest().is_current(custom.schema_epoch)
}

/// The bytes of an entry if they can be sent unchanged.
fn ready(resource: &Resource, entry: &Entry<Digest>) -> Option<Bytes> {
    match &resource.origin {
        Origin::BuiltIn => BuiltInConversion::of(resource).is_none().then(|| entry.value.clone()),
        Origin::Custom(custom) => {
            let digest = entry.digest();
            if *digest.api_version == *resource.api_version() && is_current(entry, custom) {
                return Some(entry.value.clone());
            }
            digest.rendering(&resource.version, custom.schema_epoch)
        }
    }
}
