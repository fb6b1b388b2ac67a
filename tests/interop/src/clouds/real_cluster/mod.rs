//! `cargo xtask real-cluster`: runs the example cluster with real nodes on this host, through Pods, the loss of a
//! node and deletion, after which nothing may be left.

mod lifecycle;
mod timeline;
mod traces;
mod upgrade;
mod user_mode;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capstan_kvm::namespace::{Namespaces, Settings};
use clap::Args;

use crate::bed::ports::free_port;
use crate::bed::process::at_signal;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir, capstan};
use crate::node_image::{self, Release};
use crate::peers::Cache;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Folder of node images [default: built in the peers' cache]
    #[arg(long)]
    images: Option<PathBuf>,
    /// Only the first control plane machine, the first worker and their Pods
    #[arg(long, conflicts_with = "upgrade")]
    short: bool,
    /// Number of control plane machines in the manifest
    #[arg(long, default_value_t = 1, value_name = "N", requires = "short", value_parser = clap::value_parser!(u8).range(1..=5))]
    control_planes: u8,
    /// Upgrade a cluster from the previous minor release instead
    #[arg(long)]
    upgrade: bool,
    /// Run on this User Mode Linux kernel instead of the host's, with cgroup v2 only
    #[arg(long, value_name = "FILE", conflicts_with = "upgrade")]
    kernel: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("real-cluster creates namespaces, mounts and interfaces: run as root");
    }
    let images = match options.images {
        Some(images) => std::path::absolute(images)?,
        None => node_image::images()?,
    };
    if let Some(kernel) = &options.kernel {
        let arguments = match options.short {
            true => vec![format!("--control-planes={}", options.control_planes), "--short".to_owned()],
            false => Vec::new(),
        };
        return user_mode::run_on(kernel, &capstan::binary(options.capstan.as_deref())?, &images, &arguments);
    }
    // Checked before anything is built: an image takes minutes.
    let here = Settings { state: images.clone(), images: images.clone(), balancer: Vec::new() };
    Namespaces::check(&here)?;
    let binary = capstan::binary(options.capstan.as_deref())?;
    match options.upgrade {
        true => node_image::ensure_upgrade(&images)?,
        false => node_image::ensure(&images)?,
    }
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("real-cluster")?;
    let home = workdir.folder("home")?;
    // On the file system of the images: container layers are hard-linked from there.
    let machines = tempfile::Builder::new().prefix(".machines-").tempdir_in(&images)?;
    let state = machines.path().to_owned();
    let tools = lifecycle::Tools {
        kubectl: Tool::new(cache.built("kubectl")?, home.clone()),
        clusterctl: Tool::new(cache.built("clusterctl")?, home),
        etcdctl: cache.built("etcdctl")?,
    };
    let before = traces::look(&state)?;
    // Machines outlive the server. The sweeper removes them if a step fails.
    let sweeper = Sweeper { state: state.clone(), images: images.clone() };
    let (swept, of) = (state.clone(), images.clone());
    at_signal(move || {
        drop(Sweeper { state: swept.clone(), images: of });
        let _ = std::fs::remove_dir_all(swept);
    });
    let arguments = [
        "--kvm".to_owned(),
        format!("--kvm-state={}", state.display()),
        format!("--kvm-images={}", images.display()),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server =
        Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &arguments).await?;
    let mut cluster = lifecycle::TestCluster::new(
        tools,
        server.kubeconfig.clone(),
        workdir.path().to_owned(),
        state.clone(),
    );
    let played = match options.upgrade {
        true => upgrade_lifecycle(&mut cluster).await,
        false => full_lifecycle(&mut cluster, &server, options.short, options.control_planes).await,
    };
    if played.is_err() {
        cluster.explain().await;
    }
    played?;
    server.stop()?;
    traces::gone(&before, &state)?;
    println!("nothing is left: no process, namespace, interface, mount, cgroup or file");
    drop(sweeper);
    machines.close()?;
    workdir.passed();
    Ok(())
}

/// Scales a cluster, kills a machine and deletes the cluster.
async fn full_lifecycle(
    cluster: &mut lifecycle::TestCluster,
    server: &Server,
    short: bool,
    control_planes: u8,
) -> Result<()> {
    println!("a cluster of {}", Release::Current.version());
    cluster.begin(Release::Current, control_planes.into()).await.context("the first machines")?;
    cluster.pods().await.context("Pods")?;
    if !short {
        cluster.scale_workers().await.context("workers")?;
        cluster.three_control_planes().await.context("three control plane machines")?;
    }
    cluster.memory(server.usage()?.iter().map(|(_, usage)| usage.resident).sum())?;
    if !short {
        cluster.lose_one().await.context("the loss of a control plane machine")?;
    }
    cluster.end().await.context("the deletion of the cluster")
}

/// Upgrades a cluster while it is in use.
async fn upgrade_lifecycle(cluster: &mut lifecycle::TestCluster) -> Result<()> {
    println!("a cluster of {}, upgraded to {}", Release::Before.version(), Release::Current.version());
    cluster.begin(Release::Before, 1).await.context("a cluster of the release before")?;
    cluster.pods().await.context("Pods")?;
    cluster.upgrade().await.context("the upgrade")?;
    cluster.end().await.context("the deletion of the cluster")
}

/// Removes all machines and networks on drop, however the suite ends.
struct Sweeper {
    state: PathBuf,
    images: PathBuf,
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if std::env::var_os("CAPSTAN_KEEP").is_some() {
            return;
        }
        let settings =
            Settings { state: self.state.clone(), images: self.images.clone(), balancer: Vec::new() };
        let swept = Namespaces::open(settings).and_then(|namespaces| namespaces.remove_everything());
        if let Err(error) = swept {
            eprintln!("real-cluster: not everything could be removed: {error}");
        }
    }
}
