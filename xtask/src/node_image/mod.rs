//! `cargo xtask node-image`: a root file system that machines of `capstan server --kvm` boot from.
//!
//! From Debian's packages and from peers built from their Go modules; `make.sh` is the recipe.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::{self, Cache, catalog, debian};
use crate::text::Lap;

/// Programs on an image, and in the container images of a control plane.
const PEERS: [&str; 18] = [
    "kubectl",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubeadm",
    "kubelet",
    "kube-scheduler",
    "kube-proxy",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "bridge",
    "host-local",
    "loopback",
    "portmap",
    "coredns",
    "etcdctl",
];
const RECIPE: &str = include_str!("make.sh");

#[derive(Debug, Args)]
pub struct Options {
    /// Folder for images; a folder of the peers' cache when not given
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Mirror of Debian that packages come from; debootstrap's own choice when not given
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Make the image anew even if it is there
    #[arg(long)]
    again: bool,
}

pub fn run(options: &Options) -> Result<()> {
    let images = match &options.into {
        Some(folder) => std::path::absolute(folder)?,
        None => images()?,
    };
    make(&images, options.mirror.as_deref(), options.again)
}

/// Where images are that no place was named for.
pub fn images() -> Result<PathBuf> {
    Cache::locate()?.folder("node-images")
}

/// Makes the image of the pinned Kubernetes unless it is there.
pub fn ensure() -> Result<PathBuf> {
    let images = images()?;
    make(&images, None, false)?;
    Ok(images)
}

/// Name of the image, as machines ask for it.
fn name() -> String {
    format!("kubernetes-v{}", catalog::KUBERNETES)
}

fn make(images: &Path, mirror: Option<&str>, again: bool) -> Result<()> {
    let image = images.join(name());
    let recipe = image.join("recipe");
    let current = std::fs::read_to_string(&recipe).is_ok_and(|text| text == RECIPE);
    if current && !again {
        println!("node-image: {} is there", image.display());
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("a root file system takes root to make: run as root");
    }
    let mut lap = Lap::start();
    peers::build(&PEERS.map(str::to_owned))?;
    let cache = Cache::locate()?;
    let programs = cache.folder("bin")?;
    let go_mod = |name: &str| format!("module capstan.peers/{name}\n\ngo 1.26.0\n");
    for (name, source) in [("pause", include_str!("pause.go")), ("web", include_str!("web.go"))] {
        peers::small_program(name, &go_mod(name), source)?;
    }
    lap.end("programs");
    std::fs::create_dir_all(images)?;
    let debootstrap = debian::unpacked("debootstrap", &cache.folder("src/debootstrap")?)?;
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", RECIPE])
        .env("IMAGE", &image)
        .env("DEBIAN", images.join("debian-bookworm"))
        .env("BIN", &programs)
        .env("PROGRAMS", &programs)
        .env("DEBOOTSTRAP", debootstrap)
        .env("VERSION", format!("v{}", catalog::KUBERNETES))
        .env("MIRROR", mirror.unwrap_or_default())
        .status()
        .context("run unshare (of util-linux)")?;
    if !status.success() {
        bail!("the image could not be made ({status})");
    }
    std::fs::write(recipe, RECIPE)?;
    lap.end("image");
    Ok(())
}
