//! Writes to the API. Responses enter the caches at once.

use capstan_object::{Key, OwnerReference, Time};
use serde::Deserialize;
use serde_json::Value;

use crate::client::{ApiError, Client, Deletion, Patch, Reply};
use crate::{Caches, KindName};

/// Writes objects and updates the caches. See [`crate::Cache`] for why a decision needs no other fencing.
#[derive(Clone)]
pub(crate) struct Writer {
    pub client: Client,
    pub caches: Caches,
    /// Whether responses enter the caches. Off only in the test that shows why they must.
    pub write_through: bool,
}

/// Whether a response describes a live or a deleted object.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Head {
    kind: String,
    metadata: HeadMeta,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct HeadMeta {
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<Time>,
    finalizers: Vec<String>,
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    uid: String,
}

/// Result of a create.
pub(crate) enum Created {
    /// The object exists and is ours.
    Ours,
    /// An object of that name has another owner, or is being deleted.
    Taken,
}

impl Writer {
    pub async fn create(&self, kind: &KindName, namespace: &str, body: &Value) -> Result<Created, ApiError> {
        match self.client.create(kind, namespace, body).await {
            Ok(reply) => {
                self.absorb(kind, &reply);
                Ok(Created::Ours)
            }
            Err(error) if error.is_already_exists() => self.find_created(kind, namespace, body, error).await,
            Err(error) => Err(error),
        }
    }

    /// A create whose response was lost conflicts when it is repeated: the existing object may be the one created.
    async fn find_created(
        &self,
        kind: &KindName,
        namespace: &str,
        body: &Value,
        error: ApiError,
    ) -> Result<Created, ApiError> {
        let key = Key::new(namespace, body["metadata"]["name"].as_str().unwrap_or_default());
        let Some(reply) = self.client.get_raw(kind, &key).await? else { return Err(error) };
        let head: Head = reply.parse()?;
        let wanted: Vec<OwnerReference> =
            serde_json::from_value(body["metadata"]["ownerReferences"].clone()).unwrap_or_default();
        let is_owner = |owner: &OwnerReference| wanted.iter().any(|want| want.uid == owner.uid);
        let ours = !wanted.is_empty() && head.metadata.owner_references.iter().any(is_owner);
        if !ours || head.metadata.deletion_timestamp.is_some() {
            return Ok(Created::Taken);
        }
        self.absorb(kind, &reply);
        Ok(Created::Ours)
    }

    /// Changes an object; returns its new version.
    pub async fn patch(
        &self,
        kind: &KindName,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<String, ApiError> {
        let reply = self.client.patch(kind, key, subresource, patch).await?;
        Ok(self.absorb_changed(kind, key, &reply))
    }

    pub async fn delete(&self, kind: &KindName, key: &Key, deletion: &Deletion) -> Result<(), ApiError> {
        match self.client.delete(kind, key, deletion).await {
            Ok(reply) => {
                self.absorb_changed(kind, key, &reply);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn absorb(&self, kind: &KindName, reply: &Reply) {
        if self.write_through {
            self.caches.absorb(kind, reply);
        }
    }

    /// Updates the cache from a response; returns the object's version.
    fn absorb_changed(&self, kind: &KindName, key: &Key, reply: &Reply) -> String {
        let head: Head = reply.parse().unwrap_or_default();
        let meta = head.metadata;
        if !self.write_through {
            return meta.resource_version;
        }
        // Pods have a grace period; all other objects are gone with their last finalizer.
        let gone = meta.deletion_timestamp.is_some() && meta.finalizers.is_empty();
        if head.kind == "Status" && meta.uid.is_empty() {
            self.caches.absorb_gone(kind, key, &head.details.uid);
        } else if !gone {
            self.caches.absorb(kind, reply);
        } else if kind.kind != "Pod" {
            self.caches.absorb_gone(kind, key, &meta.uid);
        }
        meta.resource_version
    }
}
