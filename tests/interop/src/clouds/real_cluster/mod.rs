//! `cargo xtask real-cluster`: the examples' cluster with real nodes on this host, until Pods run in it, through the
//! loss of a node, and until nothing of it is left.

mod life;
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
    /// Our binary; built with the profile `ci` when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Folder of node images; made in the peers' cache when not given
    #[arg(long)]
    images: Option<PathBuf>,
    /// Only the first control plane machine, the first worker and their Pods
    #[arg(long, conflicts_with = "upgrade")]
    short: bool,
    /// How many control plane machines the manifest asks for
    #[arg(long, default_value_t = 1, value_name = "N", requires = "short", value_parser = clap::value_parser!(u8).range(1..=5))]
    control_planes: u8,
    /// A cluster of the minor release before and its upgrade instead
    #[arg(long)]
    upgrade: bool,
    /// On this kernel of User Mode Linux instead of the host's, with control groups v2 alone
    #[arg(long, value_name = "FILE", conflicts_with = "upgrade")]
    kernel: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("real-cluster makes namespaces, mounts and interfaces: run as root");
    }
    let images = match options.images {
        Some(images) => std::path::absolute(images)?,
        None => node_image::images()?,
    };
    if let Some(kernel) = &options.kernel {
        let life = match options.short {
            true => vec![format!("--control-planes={}", options.control_planes), "--short".to_owned()],
            false => Vec::new(),
        };
        return user_mode::play(kernel, &capstan::binary(options.capstan.as_deref())?, &images, &life);
    }
    // Before anything is built: an image takes minutes.
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
    // Beside the images: layers of containers are linked from there, which only one file system can.
    let machines = tempfile::Builder::new().prefix(".machines-").tempdir_in(&images)?;
    let state = machines.path().to_owned();
    let tools = life::Tools {
        kubectl: Tool::new(cache.built("kubectl")?, home.clone()),
        clusterctl: Tool::new(cache.built("clusterctl")?, home),
        etcdctl: cache.built("etcdctl")?,
    };
    let before = traces::look(&state)?;
    // Machines outlive the server: what is left when something fails is swept.
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
    let mut life =
        life::Life::new(tools, server.kubeconfig.clone(), workdir.path().to_owned(), state.clone());
    let played = match options.upgrade {
        true => upgraded_life(&mut life).await,
        false => first_life(&mut life, &server, options.short, options.control_planes).await,
    };
    if played.is_err() {
        life.explain().await;
    }
    played?;
    server.stop()?;
    traces::gone(&before, &state)?;
    println!("nothing is left: no process, namespace, interface, mount, control group or file");
    drop(sweeper);
    machines.close()?;
    workdir.passed();
    Ok(())
}

/// A cluster that grows, loses a machine and goes.
async fn first_life(life: &mut life::Life, server: &Server, short: bool, control_planes: u8) -> Result<()> {
    println!("a cluster of {}", Release::Current.version());
    life.begin(Release::Current, control_planes.into()).await.context("the first machines")?;
    life.pods().await.context("Pods")?;
    if !short {
        life.scale_workers().await.context("workers")?;
        life.three_control_planes().await.context("three control plane machines")?;
    }
    life.memory(server.usage()?.iter().map(|(_, usage)| usage.resident).sum())?;
    if !short {
        life.lose_one().await.context("the loss of a control plane machine")?;
    }
    life.end().await.context("the end of the cluster")
}

/// A cluster that becomes one of the next release while it is used.
async fn upgraded_life(life: &mut life::Life) -> Result<()> {
    println!("a cluster of {} that becomes one of {}", Release::Before.version(), Release::Current.version());
    life.begin(Release::Before, 1).await.context("a cluster of the release before")?;
    life.pods().await.context("Pods")?;
    life.upgrade().await.context("the upgrade")?;
    life.end().await.context("the end of the cluster")
}

/// Removes whatever is left of machines and networks, however the suite ends.
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
