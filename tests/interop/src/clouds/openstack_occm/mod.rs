//! `cargo xtask openstack-occm`: the OpenStack cloud controller manager in a cluster of ours on a simulated cloud.
//!
//! `capstan server` creates a cluster on `capstan sim openstack` whose kubelets leave their Nodes to an external cloud
//! provider. The controller manager, built from its module, runs on the workload cluster with the application credential
//! that our provider made for it. It must initialize the Nodes, serve a Service of type LoadBalancer, follow a new worker,
//! and remove the load balancer when the Service is deleted. Then it is stopped and the cluster is deleted with another
//! Service in it: our provider must remove what that Service had in the cloud.

mod controller;
mod manifest;
mod nodes;
mod services;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use capstan_openstack_client::network::{Subnet, SubnetFilter};
use clap::Args;

use crate::api::Api;
use crate::bed::cluster::Cluster;
use crate::bed::openstack::OpenStack;
use crate::bed::ports::free_port;
use crate::bed::{Server, Workdir, capstan, wait};
use crate::cluster_api::manager::ensure_no_warnings;
use crate::text::Lap;
use controller::{ControllerManager, Networks, cloud_config};
use manifest::{CLOUD_CONFIG, NAME, VERSION};

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// Servers are built and booted, and kubeadm runs.
const PATIENCE: Duration = Duration::from_secs(600);
/// For what the controller manager does on Nodes.
const SOON: Duration = Duration::from_secs(180);

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("openstack-occm")?;
    let folder = workdir.path().to_owned();
    let mut lap = Lap::start();
    let port = free_port()?;
    let mut cloud = OpenStack::start_with_port(&folder, &binary, VERSION, port).await?;
    let mut server = Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &[]).await?;
    let api = server.api()?;
    let objects = manifest::cluster(&cloud.clouds_yaml, port)?;
    let cluster = Cluster::prepare(&api, NAME, objects).await?.patient(PATIENCE);
    cluster.create().await?;
    let kubeconfig = folder.join("workload.kubeconfig");
    let workload = uninitialized(&cluster, &kubeconfig).await?;
    lap.end("1+1 waits for its cloud controller manager");

    let networks = networks(&cloud).await?;
    let config = folder.join("cloud.conf");
    std::fs::write(&config, cloud_config(&credentials(&api).await?, &networks))?;
    let mut manager = ControllerManager::start(&folder, &kubeconfig, &config)?;
    let mut healthy = || {
        server.check()?;
        cloud.check()?;
        manager.check()
    };
    let found = wait::until("both nodes are initialized", SOON, || nodes::initialized(&workload, 2)).await?;
    healthy()?;
    cluster.wait_available(1, 1, &mut healthy).await?;
    lap.end("the nodes are initialized, 1+1 is Available");
    nodes::ensure_like_servers(&found, &cloud).await?;

    let web = services::create(&workload, "web").await?;
    services::ensure_served(&workload, &web, &cloud, &networks).await?;
    lap.end("a Service has a load balancer and a floating IP");
    cluster.scale(1, 2).await?;
    cluster.wait_available(1, 2, &mut || manager.check()).await?;
    services::wait_members(&workload, &web, &cloud).await?;
    let found = wait::until("three nodes are initialized", SOON, || nodes::initialized(&workload, 3)).await?;
    nodes::ensure_like_servers(&found, &cloud).await?;
    services::ensure_served(&workload, &web, &cloud, &networks).await?;
    lap.end("a new worker is initialized and a member");
    services::delete(&workload, "web").await?;
    services::ensure_gone(&web, &cloud).await?;
    lap.end("the Service is deleted, nothing of it is left");

    let shop = services::create(&workload, "shop").await?;
    services::ensure_served(&workload, &shop, &cloud, &networks).await?;
    let errors = manager.stop()?;
    ensure!(errors.is_empty(), "the controller manager logged errors:\n{}", errors.join("\n"));
    lap.end("another Service is served, the controller manager is stopped");
    cluster.delete(&mut || server.check().and_then(|()| cloud.check())).await?;
    services::ensure_gone(&shop, &cloud).await?;
    let left = cloud.leaks().await?;
    let left: Vec<_> = left.iter().map(|one| format!("{} {}", one["kind"], one["name"])).collect();
    ensure!(left.is_empty(), "left behind: {}", left.join(", "));
    ensure_no_warnings([server.logged_warnings(), cloud.logged_warnings()])?;
    lap.end("the cluster is deleted, nothing is left in the cloud");
    workdir.passed();
    Ok(())
}

/// Waits until both Nodes are there, and checks that their kubelets leave them to the controller manager.
async fn uninitialized(cluster: &Cluster<'_>, kubeconfig: &Path) -> Result<Api> {
    let (workload, found) = wait::until("the cluster has two nodes", PATIENCE, || async {
        let Ok(workload) = cluster.workload(kubeconfig).await else { return Ok(None) };
        let found = nodes::list(&workload).await?;
        Ok((found.len() == 2).then_some((workload, found)))
    })
    .await?;
    nodes::ensure_uninitialized(&found)?;
    let pods = workload.get("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns").await?;
    for pod in pods.success()?["items"].as_array().into_iter().flatten() {
        ensure!(pod["spec"]["nodeName"].is_null(), "{} runs on a tainted node", nodes::name(pod));
    }
    Ok(workload)
}

/// `cloud.conf` as our provider writes it for the workload.
async fn credentials(api: &Api) -> Result<String> {
    let (secret, file) = CLOUD_CONFIG;
    let path = format!("/api/v1/namespaces/{NAME}/secrets/{secret}");
    let secret = wait::until(secret, SOON, || async {
        let reply = api.get(&path).await?;
        if reply.status == 404 { Ok(None) } else { reply.success().map(Some) }
    })
    .await?;
    Ok(String::from_utf8(BASE64.decode(secret["data"][file].as_str().context("no cloud.conf")?)?)?)
}

async fn networks(cloud: &OpenStack) -> Result<Networks> {
    let filter = SubnetFilter { cidr: Some("10.6.0.0/24".to_owned()), ..SubnetFilter::default() };
    let subnets = cloud.client()?.list::<Subnet>(&filter).await?;
    let subnet = subnets.first().context("the cluster has no subnet")?.id.to_string();
    Ok(Networks { subnet, external: cloud.external_network().await? })
}
