//! Clusters of a restored server, held until somebody has compared them with what there is.
//!
//! Records of a backup can be older than the clusters they are about. Controllers that act on them would take machines that
//! came later for strangers and members of etcd that they do not know for lost ones. So nothing is done to a restored cluster
//! before it is resumed.

use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use capstan_apiserver::backup::Backup;
use capstan_apiserver::env::Env;
use capstan_apiserver::pki::Pki;
use capstan_apiserver::{Config, Server};
use capstan_capi_types::core::Cluster;
use capstan_controller::{Client, KindName, ListOptions, Patch};
use capstan_object::{Key, Object as _, Scope};
use capstan_store::RealDisk;
use serde_json::json;

/// On clusters that a restore paused, and not their user.
pub const HELD: &str = "capstan.dev/paused-by-restore";

/// How long the kinds of a server just started may take to be there.
const SETTLES: Duration = Duration::from_secs(10);

/// A backup as it is restored: the same, with its clusters paused; says which were not before.
pub fn held(backup: Backup, beside: &Path) -> Result<(Backup, Vec<Key>)> {
    // In a directory of its own, so that one that is cut short is nowhere a server could start from.
    let dir =
        tempfile::tempdir_in(beside).with_context(|| format!("{} cannot be written to", beside.display()))?;
    backup.restore(dir.path(), std::time::SystemTime::now())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let clusters = runtime.block_on(pause(dir.path())).context("its clusters cannot be paused")?;
    drop(runtime);
    let mut file = tempfile::tempfile_in(beside)?;
    let disk = RealDisk::open(dir.path())?;
    super::copy(dir.path(), disk, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok((Backup::read(&mut BufReader::new(file))?, clusters))
}

async fn pause(dir: &Path) -> Result<Vec<Key>> {
    let pki = Pki::load_or_create(&dir.join("pki"), Env::system())?;
    let plane = Server::start(capstan_capi_plane::configure(Config::on_disk(dir)), Arc::new(pki)).await?;
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
    let deadline = Instant::now() + SETTLES;
    let clusters: Vec<Cluster> = loop {
        match client.list_all("", &ListOptions::default()).await {
            Err(error) if error.is_not_found() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            listed => break listed?,
        }
    };
    let mut held = Vec::new();
    for cluster in clusters.iter().filter(|cluster| cluster.spec.paused != Some(true)) {
        let wanted = json!({"metadata": {"annotations": {HELD: "true"}}, "spec": {"paused": true}});
        client.patch(&kind, &cluster.key(), None, &Patch::Merge(wanted)).await?;
        held.push(cluster.key());
    }
    Ok(held)
}
