//! Pauses the clusters of a backup before it is restored.
//!
//! A backup can be older than its clusters. Controllers would treat machines that were created later as unknown and etcd
//! members that they do not know as lost. So a restored cluster is not reconciled until somebody has compared and resumed
//! it.

use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use capstan_apiserver::backup::Backup;
use capstan_apiserver::{Config, Server};
use capstan_capi_types::core::Cluster;
use capstan_controller::{Client, KindName, ListOptions, Patch};
use capstan_encryption::Encryption;
use capstan_env::Env;
use capstan_object::{Key, Object as _, Scope};
use capstan_pki::Pki;
use capstan_store::{Cipher, RealDisk};
use serde_json::json;

use crate::encryption::cipher;

/// Annotation of clusters that a restore paused, as opposed to a user.
pub const PAUSED_BY_RESTORE: &str = "capstan.dev/paused-by-restore";

/// For the kinds of a freshly started server to be established.
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the backup with its clusters paused, and the clusters that were not paused before.
pub fn pause_clusters(backup: Backup, beside: &Path, keys: &Arc<Encryption>) -> Result<(Backup, Vec<Key>)> {
    // In a temporary directory: after a crash no server can start from a half-finished one.
    let dir =
        tempfile::tempdir_in(beside).with_context(|| format!("cannot write to {}", beside.display()))?;
    let cipher = cipher(Some(keys));
    backup.restore(dir.path(), std::time::SystemTime::now(), cipher.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let clusters =
        runtime.block_on(pause(dir.path(), cipher.clone())).context("cannot pause its clusters")?;
    drop(runtime);
    let mut file = tempfile::tempfile_in(beside)?;
    let disk = RealDisk::open(dir.path())?;
    super::copy(dir.path(), disk, &mut file, Some(keys))?;
    file.seek(SeekFrom::Start(0))?;
    Ok((Backup::read(&mut BufReader::new(file), cipher.as_deref())?, clusters))
}

async fn pause(dir: &Path, cipher: Option<Arc<dyn Cipher>>) -> Result<Vec<Key>> {
    let pki = Pki::load_or_create(&dir.join("pki"), Env::system())?;
    let config = Config::on_disk(dir).with_cipher(cipher);
    let plane = Server::start(capstan_capi_plane::configure(config), Arc::new(pki)).await?;
    let client = Client::in_process(plane.clone(), "capstan-restore");
    let mut definition: KindName = KindName::namespaced(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    definition.scope = Scope::Cluster;
    let kind = KindName::of::<Cluster>();
    let name = Key::new("", format!("{}.{}", kind.plural, kind.group));
    if client.get_raw(&definition, &name).await?.is_none() {
        return Ok(Vec::new());
    }
    let deadline = Instant::now() + ESTABLISH_TIMEOUT;
    let clusters: Vec<Cluster> = loop {
        match client.list_all("", &ListOptions::default()).await {
            Err(error) if error.is_not_found() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            listed => break listed?,
        }
    };
    let mut paused = Vec::new();
    for cluster in clusters.iter().filter(|cluster| cluster.spec.paused != Some(true)) {
        let patch =
            json!({"metadata": {"annotations": {PAUSED_BY_RESTORE: "true"}}, "spec": {"paused": true}});
        client.patch(&kind, &cluster.key(), None, &Patch::Merge(patch)).await?;
        paused.push(cluster.key());
    }
    Ok(paused)
}
