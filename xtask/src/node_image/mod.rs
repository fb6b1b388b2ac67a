//! `cargo xtask node-image`: a root file system that machines of `capstan server --kvm` boot from.
//!
//! From Debian's packages and from peers built from their Go modules; `make.sh` is the recipe.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::catalog::Peer;
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
/// Programs of ours on an image, with their text.
const SMALL: [(&str, &str); 2] = [("pause", include_str!("pause.go")), ("web", include_str!("web.go"))];

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
    /// Make the image of the release that clusters are upgraded from as well
    #[arg(long)]
    before: bool,
}

/// Which release of Kubernetes is on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The one that everything is held against.
    Current,
    /// The one that clusters are upgraded from.
    Before,
}

impl Release {
    /// Such as `v1.36.3`.
    pub fn version(self) -> String {
        let version = match self {
            Release::Current => catalog::KUBERNETES,
            Release::Before => catalog::KUBERNETES_BEFORE,
        };
        format!("v{version}")
    }

    /// What the names of its programs end with in the cache of peers.
    fn suffix(self) -> &'static str {
        match self {
            Release::Current => "",
            Release::Before => catalog::BEFORE,
        }
    }

    /// Everything its image is made of.
    fn peers(self) -> Result<Vec<Peer>> {
        let mut names = PEERS.map(str::to_owned).to_vec();
        if self == Release::Before {
            let of_family = |peer: &&Peer| peer.family == catalog::Family::KubernetesBefore;
            names.extend(catalog::PEERS.iter().filter(of_family).map(|peer| peer.name.to_owned()));
        }
        catalog::select(&names)
    }
}

pub fn run(options: &Options) -> Result<()> {
    let images = match &options.into {
        Some(folder) => std::path::absolute(folder)?,
        None => images()?,
    };
    make(&images, Release::Current, options.mirror.as_deref(), options.again)?;
    if options.before {
        make(&images, Release::Before, options.mirror.as_deref(), options.again)?;
    }
    Ok(())
}

/// Where images are that no place was named for.
pub fn images() -> Result<PathBuf> {
    Cache::locate()?.folder("node-images")
}

/// Makes the image of a release in a folder unless it is there.
pub fn ensure(images: &Path, release: Release) -> Result<()> {
    make(images, release, None, false)
}

fn make(images: &Path, release: Release, mirror: Option<&str>, again: bool) -> Result<()> {
    let image = images.join(format!("kubernetes-{}", release.version()));
    let peers = release.peers()?;
    let mut source = RECIPE.to_owned();
    source.extend(peers::stamps(&peers));
    source.extend(SMALL.map(|(_, text)| text));
    let mark = image.join("made-from");
    if std::fs::read_to_string(&mark).is_ok_and(|text| text == source) && !again {
        println!("node-image: {} is there", image.display());
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("a root file system takes root to make: run as root");
    }
    let mut lap = Lap::start();
    let names: Vec<String> = peers.iter().map(|peer| peer.name.to_owned()).collect();
    peers::build(&names)?;
    let cache = Cache::locate()?;
    let programs = cache.folder("bin")?;
    let go_mod = |name: &str| format!("module capstan.peers/{name}\n\ngo 1.26.0\n");
    for (name, text) in SMALL {
        peers::small_program(name, &go_mod(name), text)?;
    }
    lap.end("programs");
    std::fs::create_dir_all(images)?;
    let debootstrap = debian::unpacked("debootstrap", &cache.folder("src/debootstrap")?)?;
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", RECIPE])
        .env("IMAGE", &image)
        .env("DEBIAN", images.join("debian-bookworm"))
        .env("BIN", &programs)
        .env("SUFFIX", release.suffix())
        .env("DEBOOTSTRAP", debootstrap)
        .env("VERSION", release.version())
        .env("MIRROR", mirror.unwrap_or_default())
        .status()
        .context("run unshare (of util-linux)")?;
    if !status.success() {
        bail!("the image could not be made ({status})");
    }
    std::fs::write(mark, source)?;
    lap.end("image");
    Ok(())
}
