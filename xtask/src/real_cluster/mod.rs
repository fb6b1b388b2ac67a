//! `cargo xtask real-cluster`: the examples' cluster with real nodes on this host, until Pods run in it, through the
//! loss of a node, and until nothing of it is left.

mod life;
mod traces;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capstan_kvm::namespace::{Namespaces, Settings};
use clap::Args;

use crate::bed::ports::free_port;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir, capstan};
use crate::node_image;
use crate::peers::Cache;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Folder of node images; made in the peers' cache when not given
    #[arg(long)]
    images: Option<PathBuf>,
    /// End after the first control plane machine, the first worker and their Pods
    #[arg(long)]
    short: bool,
}

pub async fn run(options: Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("real-cluster makes namespaces, mounts and interfaces: run as root");
    }
    let binary = capstan::binary(options.capstan.as_deref())?;
    let images = match options.images {
        Some(images) => std::path::absolute(images)?,
        None => node_image::ensure()?,
    };
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("real-cluster")?;
    let (home, state) = (workdir.folder("home")?, workdir.folder("kvm")?);
    let tools = life::Tools {
        kubectl: Tool::new(cache.built("kubectl")?, home.clone()),
        clusterctl: Tool::new(cache.built("clusterctl")?, home),
        etcdctl: cache.built("etcdctl")?,
    };
    let before = traces::look(&state)?;
    // Machines outlive the server: what is left when something fails is swept.
    let sweeper = Sweeper { state: state.clone(), images: images.clone() };
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
    life.begin().await.context("one control plane machine and one worker")?;
    life.pods().await.context("Pods")?;
    if !options.short {
        life.scale_workers().await.context("workers")?;
        life.three_control_planes().await.context("three control plane machines")?;
        life.lose_one().await.context("the loss of a control plane machine")?;
    }
    life.memory(server.usage()?.iter().map(|(_, usage)| usage.resident).sum())?;
    life.end().await.context("the end of the cluster")?;
    server.stop()?;
    traces::gone(&before, &state)?;
    println!("nothing is left: no process, namespace, interface, mount, control group or file");
    drop(sweeper);
    workdir.passed();
    Ok(())
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
