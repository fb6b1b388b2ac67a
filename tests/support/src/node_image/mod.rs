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
    /// Make the images of an upgrade: of the release that clusters come from and of this one, each with the other's
    /// add-ons
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

    /// The release at the other end of an upgrade.
    fn other(self) -> Self {
        match self {
            Release::Current => Release::Before,
            Release::Before => Release::Current,
        }
    }

    /// What the names of its programs end with in the cache of peers.
    fn suffix(self) -> &'static str {
        match self {
            Release::Current => "",
            Release::Before => catalog::BEFORE,
        }
    }

    /// Everything its image is made of.
    fn peers(self, company: Company) -> Result<Vec<Peer>> {
        let mut names: Vec<String> = catalog::NODE_IMAGE.iter().map(|name| (*name).to_owned()).collect();
        let of_family = |peer: &&Peer| peer.family == catalog::Family::KubernetesBefore;
        let before = catalog::PEERS.iter().filter(of_family).map(|peer| peer.name.to_owned());
        match (self, company) {
            (Release::Before, _) => names.extend(before),
            (Release::Current, Company::Other) => {
                names.extend(["kubeadm", "kube-proxy"].map(|name| format!("{name}{}", catalog::BEFORE)));
            }
            (Release::Current, Company::None) => {}
        }
        catalog::select(&names)
    }
}

/// Whose add-ons an image has beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Company {
    None,
    /// Those of the release at the other end of an upgrade: nodes run both for a while.
    Other,
}

pub fn run(options: &Options) -> Result<()> {
    let images = match &options.into {
        Some(folder) => std::path::absolute(folder)?,
        None => images()?,
    };
    let wanted: &[(Release, Company)] = match options.before {
        false => &[(Release::Current, Company::None)],
        true => &[(Release::Before, Company::Other), (Release::Current, Company::Other)],
    };
    for (release, company) in wanted {
        make(&images, *release, *company, options.mirror.as_deref(), options.again)?;
    }
    Ok(())
}

/// Where images are that no place was named for.
pub fn images() -> Result<PathBuf> {
    Cache::locate()?.folder("node-images")
}

/// Makes the image of this release in a folder unless it is there.
pub fn ensure(images: &Path) -> Result<()> {
    make(images, Release::Current, Company::None, None, false)
}

/// Makes the images of an upgrade in a folder unless they are there.
pub fn ensure_upgrade(images: &Path) -> Result<()> {
    [Release::Before, Release::Current]
        .into_iter()
        .try_for_each(|release| make(images, release, Company::Other, None, false))
}

/// What an image is made from: if this changes, it is made again.
fn source(release: Release, company: Company) -> Result<String> {
    let mut source = RECIPE.to_owned();
    source.extend(peers::stamps(&release.peers(company)?));
    source.extend(SMALL.map(|(_, text)| text));
    Ok(source)
}

fn make(images: &Path, release: Release, company: Company, mirror: Option<&str>, again: bool) -> Result<()> {
    let image = images.join(format!("kubernetes-{}", release.version()));
    let mark = image.join("made-from");
    let made = std::fs::read_to_string(&mark).unwrap_or_default();
    // One with another's add-ons is as good as one without.
    let serves = made == source(release, Company::Other)? || made == source(release, company)?;
    if serves && !again {
        println!("node-image: {} is there", image.display());
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("a root file system takes root to make: run as root");
    }
    let mut lap = Lap::start();
    let names: Vec<String> = release.peers(company)?.iter().map(|peer| peer.name.to_owned()).collect();
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
    let other = (company == Company::Other).then(|| release.other());
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
        bail!("the image could not be made ({status})");
    }
    std::fs::write(mark, source(release, company)?)?;
    lap.end("image");
    Ok(())
}
