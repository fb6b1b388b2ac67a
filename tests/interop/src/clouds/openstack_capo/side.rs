//! The run of one plane on its cloud.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::capc_on_sim::report::{Calls, Measured, Phase};
use super::manifest::{self, SSH_KEY, SSH_KEY_MATERIAL, TemplateValues};
use super::{Options, idle};
use crate::api::Api;
use crate::bed::cluster::Cluster;
use crate::bed::openstack::OpenStack;
use crate::text::Lap;

/// Time for trailing writes after a cluster has become ready.
const SETTLE: Duration = Duration::from_secs(10);

/// A plane and the folder of its files.
pub struct Side<'a> {
    name: &'static str,
    folder: PathBuf,
    api: &'a Api,
    options: &'a Options,
}

impl<'a> Side<'a> {
    pub fn new(name: &'static str, folder: &Path, api: &'a Api, options: &'a Options) -> Self {
        Self { name, folder: folder.to_owned(), api, options }
    }

    /// Creates and deletes clusters, and records the calls of each phase.
    pub async fn measure(
        &self,
        cloud: &mut OpenStack,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<Measured> {
        cloud.register_ssh_key(SSH_KEY, SSH_KEY_MATERIAL).await?;
        let external = cloud.external_network().await?;
        let mut lap = Lap::start();
        let mut measured = Measured { plane: self.name, ..Measured::default() };

        let (cluster, phase) = self.created(cloud, &external, ("one", (1, 1)), healthy).await?;
        measured.small = phase;
        lap.end("1+1 is Available");
        if let Some(pause) = idle(self.options) {
            tokio::time::sleep(SETTLE).await;
            let (before, begin) = (cloud.calls().await?, Instant::now());
            tokio::time::sleep(pause).await;
            healthy()?;
            let calls = Calls::between(&before, &cloud.calls().await?);
            measured.idle = Some(Phase { calls, took: begin.elapsed() });
            lap.end("idle");
        }
        cluster.delete(healthy).await?;
        lap.end("1+1 is gone");
        if !self.options.short {
            let (cluster, phase) = self.created(cloud, &external, ("three", (3, 3)), healthy).await?;
            measured.large = Some(phase);
            lap.end("3+3 is Available");
            cluster.delete(healthy).await?;
            lap.end("3+3 is gone");
        }
        cloud.delete_ssh_key(SSH_KEY).await?;
        Ok(measured)
    }

    /// Creates a cluster and waits until it is Available. Returns the calls.
    async fn created(
        &self,
        cloud: &mut OpenStack,
        external_network: &str,
        (name, machines): (&str, (i64, i64)),
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<(Cluster<'a>, Phase)> {
        let (before, begin) = (cloud.calls().await?, Instant::now());
        let values = TemplateValues { name, machines, external_network };
        let cluster = Cluster::prepare(self.api, name, manifest::published(&values, cloud)?).await?;
        cluster.create().await?;
        cluster.install_cni(&self.folder.join("workload.kubeconfig")).await?;
        let mut all_healthy = || healthy().and_then(|()| cloud.check());
        cluster.wait_available(machines.0, machines.1, &mut all_healthy).await?;
        let calls = Calls::between(&before, &cloud.calls().await?);
        Ok((cluster, Phase { calls, took: begin.elapsed() }))
    }
}
