//! `capstan sim openstack` as a separate process. Planes reach it only through its APIs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use capstan_openstack_client::compute::{Keypair, NewKeypair};
use capstan_openstack_client::config::Clouds;
use capstan_openstack_client::network::{Network, NetworkFilter};
use capstan_openstack_client::{Client, Policy};
use serde_json::Value;

use super::managers::plain;
use super::ports::free_port;
use super::process::{Process, Program};
use super::wait;

/// Name of the tenant's cloud in `clouds.yaml`, and of its project and user.
pub const TENANT: &str = "capstan";
/// Where API servers listen, on nodes and on floating IPs: CAPO's templates have no variable for it.
const ENDPOINT_PORT: u16 = 6443;

/// A running cloud. Its servers are gone when it is dropped.
#[derive(Debug)]
pub struct OpenStack {
    process: Process,
    port: u16,
    /// What the tenant would put into a Secret.
    pub clouds_yaml: String,
}

impl OpenStack {
    /// Starts a cloud with an image of `version` and waits until it answers.
    pub async fn start(folder: &Path, binary: &Path, version: &str) -> Result<Self> {
        Self::start_with_port(folder, binary, version, ENDPOINT_PORT).await
    }

    /// Like [`Self::start`], with another port of the API servers of clusters.
    pub async fn start_with_port(
        folder: &Path,
        binary: &Path,
        version: &str,
        endpoint_port: u16,
    ) -> Result<Self> {
        let port = free_port()?;
        let process = Program::new("openstack", binary)
            .args(["sim", "openstack"])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .arg(format!("--endpoint-port={endpoint_port}"))
            .arg(format!("--kubernetes={version}"))
            .start(folder)?;
        let log = process.log().to_owned();
        let clouds_yaml =
            wait::until("the simulated OpenStack prints clouds.yaml", Duration::from_secs(60), || async {
                Ok(printed_clouds(&std::fs::read_to_string(&log)?))
            })
            .await?;
        let cloud = Self { process, port, clouds_yaml };
        wait::until("the simulated OpenStack answers", Duration::from_secs(60), || async {
            cloud.calls().await.map(Some)
        })
        .await?;
        Ok(cloud)
    }

    /// Fails if the process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Warnings and errors in its log.
    pub fn logged_warnings(&self) -> Result<Vec<String>> {
        self.process.logged_warnings()
    }

    /// Number of requests so far, by service, method and path.
    pub async fn calls(&self) -> Result<BTreeMap<String, u64>> {
        Ok(serde_json::from_value(self.get("/sim/calls").await?)?)
    }

    /// Resources of the tenant that were not there at the start.
    pub async fn leaks(&self) -> Result<Vec<Value>> {
        Ok(serde_json::from_value(self.get(&format!("/sim/leaks?project={TENANT}")).await?)?)
    }

    /// Id of the external network of the first region.
    pub async fn external_network(&self) -> Result<String> {
        let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
        let found = self.client()?.list::<Network>(&filter).await?;
        Ok(found.first().context("the cloud has no external network")?.id.to_string())
    }

    /// Registers an SSH public key for the tenant.
    pub async fn register_ssh_key(&self, name: &str, public_key: &str) -> Result<()> {
        let new = NewKeypair {
            name: name.to_owned(),
            public_key: Some(public_key.to_owned()),
            ..NewKeypair::default()
        };
        self.client()?.create::<Keypair>(&new).await?;
        Ok(())
    }

    /// Deletes an SSH public key of the tenant.
    pub async fn delete_ssh_key(&self, name: &str) -> Result<()> {
        self.client()?.delete::<Keypair>(&name.into()).await?;
        Ok(())
    }

    /// A client with the credentials of the tenant.
    pub fn client(&self) -> Result<Client> {
        let clouds = Clouds::parse(&self.clouds_yaml, None, None)?;
        Ok(Client::over_https(clouds.cloud(Some(TENANT), None)?, Policy::default())?)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let answer = plain(self.port, path).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("a response without a body")?;
        ensure!(head.split_whitespace().nth(1) == Some("200"), "{path}: {head}");
        Ok(serde_json::from_str(body)?)
    }
}

/// The `clouds.yaml` in what the simulator printed, once it is complete.
fn printed_clouds(log: &str) -> Option<String> {
    let (_, rest) = log.split_once("clouds:\n")?;
    let (entries, _) = rest.split_once("\n# faults:")?;
    let entries: Vec<&str> = entries.lines().filter(|line| line.starts_with(' ')).collect();
    Some(format!("clouds:\n{}\n", entries.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clouds_are_read_only_when_all_are_printed() {
        let log = "# a simulated OpenStack answers\nclouds:\n  capstan:\n    auth: {}\n\n# faults: curl\n";
        assert_eq!(printed_clouds(log).as_deref(), Some("clouds:\n  capstan:\n    auth: {}\n"));
        assert_eq!(printed_clouds("clouds:\n  capstan:\n"), None);
    }
}
