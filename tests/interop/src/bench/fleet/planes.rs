//! The management planes that are measured, each of several processes.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::api::Api;
use crate::bed::cluster::examples;
use crate::bed::manager::Manager;
use crate::bed::managers::plain;
use crate::bed::ports::free_port;
use crate::bed::process::Usage;
use crate::bed::site::Site;
use crate::bed::{Controllers, Managers, Server};
use crate::cluster_api::manager::mixed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    InProcess,
    Apart,
    OverTls,
    Upstream,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in process",
            Self::Apart => "apart",
            Self::OverTls => "over TLS",
            Self::Upstream => "upstream",
        }
    }

    /// Objects created once, and objects created per cluster. Upstream's nodes are ready without a network.
    pub fn manifests(self) -> Result<(Vec<Value>, Vec<Value>)> {
        Ok(match self {
            Self::InProcess | Self::Apart | Self::OverTls => {
                (examples(&["cni.yaml"])?, examples(&["sim-cluster.yaml"])?)
            }
            Self::Upstream => (Vec::new(), mixed::in_memory()?),
        })
    }
}

#[derive(Debug)]
pub struct Plane {
    pub kind: Kind,
    pub api: Api,
    server: Server,
    site: Option<Site>,
    manager: Option<Manager>,
    upstream: Option<Managers>,
}

impl Plane {
    /// Starts its processes and waits until all are ready.
    pub async fn start(kind: Kind, folder: &Path, binary: &Path, algorithm: &str) -> Result<Self> {
        let port = format!("--simulator-port={}", free_port()?);
        let algorithm = format!("--key-algorithm={algorithm}");
        // Upstream's in-memory kubelets have no heartbeat either.
        let simulated = ["--simulator", "--simulator-instant", "--simulator-heartbeat=0", &port, &algorithm];
        let mut site = None;
        let server = match kind {
            Kind::Apart => {
                let site = site.insert(Site::start_with(folder, binary, &["--heartbeat=0"]).await?);
                let flag = site.flag();
                Server::capstan_with(folder, binary, free_port()?, &[&flag, &algorithm]).await?
            }
            Kind::InProcess => Server::capstan_with(folder, binary, free_port()?, &simulated).await?,
            Kind::OverTls => Server::capstan(folder, binary, free_port()?).await?,
            Kind::Upstream => Server::kube(folder, Controllers::Plane).await?,
        };
        let (mut manager, mut upstream) = (None, None);
        match kind {
            Kind::InProcess | Kind::Apart => {}
            Kind::OverTls => {
                // A single manager needs no leader election, and its Lease would count as writes when idle.
                let arguments = [&["--install-crds", "--leader-elect=false"], &simulated[..]].concat();
                let started = Manager::start("manager", folder, binary, &server.kubeconfig, &arguments);
                manager = Some(started.await?);
            }
            Kind::Upstream => {
                upstream = Some(Managers::start(&folder.join("managers"), &server.kubeconfig).await?);
            }
        }
        Ok(Self { kind, api: server.api()?, server, site, manager, upstream })
    }

    /// Fails if one of its processes has exited.
    pub fn check(&mut self) -> Result<()> {
        self.server.check()?;
        self.site.as_mut().map_or(Ok(()), Site::check)?;
        self.manager.as_mut().map_or(Ok(()), Manager::check)?;
        self.upstream.as_mut().map_or(Ok(()), Managers::check)
    }

    /// Memory and CPU time of its processes.
    pub fn usage(&self) -> Result<Vec<(String, Usage)>> {
        let mut usage = self.server.usage()?;
        if let Some(site) = &self.site {
            usage.push(site.usage()?);
        }
        if let Some(manager) = &self.manager {
            usage.push(manager.usage()?);
        }
        if let Some(managers) = &self.upstream {
            usage.extend(managers.usage()?);
        }
        Ok(usage)
    }

    /// Reconciles so far, by controller.
    pub async fn reconciles(&self) -> Result<Vec<(String, u64)>> {
        let mut pages = Vec::new();
        match (&self.manager, &self.upstream) {
            (Some(manager), _) => pages.push(plain(manager.health_port, "/metrics").await?),
            (None, Some(managers)) => {
                for port in &managers.metrics_ports {
                    pages.push(plain(*port, "/metrics").await?);
                }
            }
            (None, None) => {
                let page = self.api.get("/metrics").await?;
                pages.push(String::from_utf8_lossy(&page.body).into_owned());
            }
        }
        Ok(reconciles(&pages))
    }

    /// The revision of the store. Every write increments it by one.
    pub async fn revision(&self) -> Result<u64> {
        let list = self.api.get("/api/v1/namespaces?limit=1").await?.success()?;
        let revision =
            list["metadata"]["resourceVersion"].as_str().context("the list has no resourceVersion")?;
        revision.parse().with_context(|| format!("{revision:?} is not a revision"))
    }
}

/// Sums reconciles per controller over metrics pages and results. Managers may have controllers of the same name.
fn reconciles(pages: &[String]) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for line in pages.iter().flat_map(|page| page.lines()) {
        let Some(rest) = line.strip_prefix("controller_runtime_reconcile_total{") else { continue };
        let Some((labels, count)) = rest.split_once("} ") else { continue };
        let label = labels.split(',').find_map(|label| label.strip_prefix("controller=\""));
        let (Some(name), Ok(count)) = (label, count.trim().parse::<f64>()) else { continue };
        let name = name.trim_end_matches('"');
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += count as u64,
            None => all.push((name.to_owned(), count as u64)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconciles_are_added_up_over_results_and_managers() {
        let core = "# HELP controller_runtime_reconcile_total x\n\
                    controller_runtime_reconcile_total{controller=\"machine\",result=\"error\"} 2\n\
                    controller_runtime_reconcile_total{controller=\"machine\",result=\"success\"} 3\n\
                    controller_runtime_reconcile_total{controller=\"cluster\",result=\"success\"} 1\n\
                    other{controller=\"cluster\"} 9\n";
        let other = "controller_runtime_reconcile_total{controller=\"cluster\",result=\"success\"} 4\n";
        let all = reconciles(&[core.to_owned(), other.to_owned()]);
        assert_eq!(all, [("machine".to_owned(), 5), ("cluster".to_owned(), 5)]);
    }
}
