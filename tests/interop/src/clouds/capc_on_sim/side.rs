//! The run of one plane on its cloud.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::manifest::{self, KEYS, TemplateValues};
use super::report::{Calls, Measured, Phase};
use super::{Options, idle};
use crate::api::Api;
use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::Cluster;
use crate::text::{Lap, human_duration};

/// Time for trailing writes after a cluster has become ready.
const SETTLE: Duration = Duration::from_secs(10);
/// Published templates other than the plain one. The one with a VPC is in `capc-moved`.
const OTHERS: &[&str] = &["-managed-ssh", "-ssh-material", "-with-disk-offering", "-with-kube-vip"];

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
        &mut self,
        cloud: &mut CloudStack,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<Measured> {
        self.api.post("/api/v1/namespaces/default/secrets", &cloud.secret(KEYS)).await?.success()?;
        let mut lap = Lap::start();
        let mut measured = Measured { plane: self.name, ..Measured::default() };

        let (cluster, phase) = self.created(cloud, ("one", "", (1, 1)), healthy).await?;
        measured.small = phase;
        lap.end("1+1 is ready");
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
            let (cluster, phase) = self.created(cloud, ("three", "", (3, 3)), healthy).await?;
            measured.large = Some(phase);
            lap.end("3+3 is ready");
            cluster.delete(healthy).await?;
            lap.end("3+3 is gone");
        }
        Ok(measured)
    }

    /// Brings clusters of the other published templates to ready, all at the same time.
    pub async fn published(
        &mut self,
        cloud: &mut CloudStack,
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        if self.options.short {
            return Ok(());
        }
        cloud.register_ssh_key(manifest::SSH_KEY, manifest::SSH_KEY_MATERIAL).await?;
        let begin = Instant::now();
        let mut clusters = Vec::new();
        for template in OTHERS {
            let name = format!("published{template}");
            clusters.push(self.applied(cloud, (&name, template, (1, 1))).await?);
        }
        for cluster in &clusters {
            cluster.install_cni(&self.kubeconfig()).await?;
        }
        for cluster in &clusters {
            cluster.wait_available(1, 1, healthy).await?;
        }
        println!("  {} are ready: {}", OTHERS.join(", "), human_duration(begin.elapsed()));
        for cluster in &clusters {
            cluster.delete(healthy).await?;
        }
        cloud.delete_ssh_key(manifest::SSH_KEY).await
    }

    /// Creates a cluster and waits until it is ready. Returns the calls.
    async fn created(
        &self,
        cloud: &mut CloudStack,
        what: (&str, &str, (i64, i64)),
        healthy: &mut impl FnMut() -> Result<()>,
    ) -> Result<(Cluster<'a>, Phase)> {
        let (before, begin) = (cloud.calls().await?, Instant::now());
        let cluster = self.applied(cloud, what).await?;
        cluster.install_cni(&self.kubeconfig()).await?;
        let (control_plane, workers) = what.2;
        let mut all_healthy = || healthy().and_then(|()| cloud.check());
        cluster.wait_available(control_plane, workers, &mut all_healthy).await?;
        let mut calls = Calls::between(&before, &cloud.calls().await?);
        // The suite's own call, for a free address.
        calls.subtract("listPublicIpAddresses", 1);
        Ok((cluster, Phase { calls, took: begin.elapsed() }))
    }

    /// Applies a published template under a name.
    async fn applied(
        &self,
        cloud: &mut CloudStack,
        (name, template, machines): (&str, &str, (i64, i64)),
    ) -> Result<Cluster<'a>> {
        let values = TemplateValues { name, machines, address: cloud.free_address().await? };
        let cluster =
            Cluster::prepare(self.api, name, manifest::published(template, &values, cloud)?).await?;
        cluster.create().await?;
        Ok(cluster)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("workload.kubeconfig")
    }
}
