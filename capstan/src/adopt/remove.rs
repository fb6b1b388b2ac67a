//! Removes objects from the server, and nothing else: finalizers go first, so that no controller deletes anything in a
//! cloud. The cluster must be locked, and everything that an object owns must be removed with it: the garbage collector
//! deletes the rest the ordinary way.

use anyhow::{Context, Result};
use capstan_controller::{Client, Deletion, KindName, Patch, Propagation};
use capstan_object::Key;
use serde_json::json;

/// An object to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: KindName,
    pub key: Key,
    pub uid: String,
}

/// Removes objects in reverse order: what is owned before its owners, and the Cluster, which holds the lock, late.
pub async fn remove(client: &Client, targets: &[Target]) -> Result<()> {
    for target in targets.iter().rev() {
        let Target { kind, key, .. } = target;
        one(client, target).await.with_context(|| format!("{} {key} cannot be removed", kind.kind))?;
    }
    Ok(())
}

async fn one(client: &Client, Target { kind, key, uid }: &Target) -> Result<()> {
    release(client, kind, key, uid).await?;
    let deletion = Deletion {
        uid: Some(uid.clone()),
        propagation: Some(Propagation::Background),
        ..Deletion::default()
    };
    match client.delete(kind, key, &deletion).await {
        Err(error) if error.is_not_found() => return Ok(()),
        done => done?,
    };
    // A controller may have added its finalizer in between.
    release(client, kind, key, uid).await
}

/// Takes the finalizers off an object, if it is still there.
async fn release(client: &Client, kind: &KindName, key: &Key, uid: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"uid": uid, "finalizers": null}}));
    match client.patch(kind, key, None, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done.map(drop)?),
    }
}
