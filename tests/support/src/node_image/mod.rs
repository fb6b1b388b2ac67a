//! `cargo xtask node-image`: builds the root file system that machines of `capstan server --kvm` boot from.
//!
//! It contains Debian packages and peers built from their Go modules. `make.sh` is the recipe.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::catalog::Peer;
use crate::peers::{self, Cache, catalog, debian};
use crate::text::Lap;

const RECIPE: &str = include_str!("make.sh");
/// Small programs of ours on an image, with their source.
const SMALL: [(&str, &str); 2] = [("pause", include_str!("pause.go")), ("web", include_str!("web.go"))];

#[derive(Debug, Args)]
pub struct Options {
    /// Folder for images [default: a folder in the peers' cache]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Debian mirror to install packages from [default: that of debootstrap]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Rebuild the image even if it is current
    #[arg(long)]
    again: bool,
    /// Build both images of an upgrade: the release that clusters start from and the current one, each with the
    /// add-ons of both
    #[arg(long)]
    before: bool,
}

/// Kubernetes release on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The release that the suites run.
    Current,
    /// The release that clusters are upgraded from.
    Before,
}

impl Release {
    /// With a `v`, for example `v1.36.3`.
    pub fn version(self) -> String {
        let version = match self {
            Release::Current => catalog::KUBERNETES,
            Release::Before => catalog::KUBERNETES_BEFORE,
        };
        format!("v{version}")
    }

    /// The release at the other end of an upgrade.
    fn other(self) -> Self {
        match self {
            Release::Current => Release::Before,
            Release::Before => Release::Current,
        }
    }

    /// Suffix of its programs in the cache of peers.
    fn suffix(self) -> &'static str {
        match self {
            Release::Current => "",
            Release::Before => catalog::BEFORE,
        }
    }

    /// Everything on its image.
    fn peers(self, add_ons: AddOns) -> Result<Vec<Peer>> {
        let mut names: Vec<String> = catalog::NODE_IMAGE.iter().map(|name| (*name).to_owned()).collect();
        let of_family = |peer: &&Peer| peer.family == catalog::Family::KubernetesBefore;
        let before = catalog::PEERS.iter().filter(of_family).map(|peer| peer.name.to_owned());
        match (self, add_ons) {
            (Release::Before, _) => names.extend(before),
            (Release::Current, AddOns::Other) => {
                names.extend(["kubeadm", "kube-proxy"].map(|name| format!("{name}{}", catalog::BEFORE)));
            }
            (Release::Current, AddOns::None) => {}
        }
        catalog::select(&names)
    }
}

/// Which add-ons an image has in addition to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddOns {
    None,
    /// Those of the release at the other end of an upgrade: nodes run both for a while.
    Other,
}

pub fn run(options: &Options) -> Result<()> {
    let images = match &options.into {
        Some(folder) => std::path::absolute(folder)?,
        None => images()?,
    };
    let wanted: &[(Release, AddOns)] = match options.before {
        false => &[(Release::Current, AddOns::None)],
        true => &[(Release::Before, AddOns::Other), (Release::Current, AddOns::Other)],
    };
    for (release, add_ons) in wanted {
        make(&images, *release, *add_ons, options.mirror.as_deref(), options.again)?;
    }
    Ok(())
}

/// Default folder for images.
pub fn images() -> Result<PathBuf> {
    Cache::locate()?.folder("node-images")
}

/// Builds the image of the current release in a folder, unless it is there.
pub fn ensure(images: &Path) -> Result<()> {
    make(images, Release::Current, AddOns::None, None, false)
}

/// Builds both images of an upgrade in a folder, unless they are there.
pub fn ensure_upgrade(images: &Path) -> Result<()> {
    [Release::Before, Release::Current]
        .into_iter()
        .try_for_each(|release| make(images, release, AddOns::Other, None, false))
}

/// Identifies what an image is built from. An image with another source is rebuilt.
fn source(release: Release, add_ons: AddOns) -> Result<String> {
    let mut source = RECIPE.to_owned();
    source.extend(peers::stamps(&release.peers(add_ons)?));
    source.extend(SMALL.map(|(_, text)| text));
    Ok(source)
}

fn make(images: &Path, release: Release, add_ons: AddOns, mirror: Option<&str>, again: bool) -> Result<()> {
    let image = images.join(format!("kubernetes-{}", release.version()));
    let mark = image.join("made-from");
    let made = std::fs::read_to_string(&mark).unwrap_or_default();
    // An image with additional add-ons also works alone.
    let serves = made == source(release, AddOns::Other)? || made == source(release, add_ons)?;
    if serves && !again {
        println!("node-image: {} is current", image.display());
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("building a root file system needs root: run as root");
    }
    let mut lap = Lap::start();
    let names: Vec<String> = release.peers(add_ons)?.iter().map(|peer| peer.name.to_owned()).collect();
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
    let other = (add_ons == AddOns::Other).then(|| release.other());
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", RECIPE])
        .env("IMAGE", &image)
        .env("DEBIAN", images.join("debian-bookworm"))
        .env("BIN", &programs)
        .env("SUFFIX", release.suffix())
        .env("DEBOOTSTRAP", debootstrap)
        .env("VERSION", release.version())
        .env("OTHER_VERSION", other.map(Release::version).unwrap_or_default())
        .env("OTHER_SUFFIX", other.map_or("", Release::suffix))
        .env("MIRROR", mirror.unwrap_or_default())
        .status()
        .context("run unshare (of util-linux)")?;
    if !status.success() {
        bail!("building the image failed ({status})");
    }
    std::fs::write(mark, source(release, add_ons)?)?;
    lap.end("image");
    Ok(())
}
