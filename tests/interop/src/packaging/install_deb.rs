//! `cargo xtask install-deb`: the Debian package on a clean Debian that its own systemd has booted, from installation to
//! purge. The steps are in `tests/install/deb.sh`, which needs nothing of this program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::bed::process::{Ending, Program};
use crate::bed::release::Packer;
use crate::bed::{Workdir, capstan};
use crate::cargo;
use crate::peers::{Cache, debian};
use crate::text::Lap;

/// Release of Debian in the root.
const RELEASE: &str = "bookworm";
/// Packages of the root besides the essential ones.
const PACKAGES: &str = "dbus,systemd,systemd-sysv";
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, Args)]
pub struct Options {
    /// Package of `cargo xtask release` [default: packed with our binary]
    package: Option<PathBuf>,
    /// Root made by debootstrap, with systemd and dbus; copied, never changed [default: one in the peers' cache]
    #[arg(long)]
    root: Option<PathBuf>,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// The program that packs releases [default: built with the profile `ci`]
    #[arg(long, env = "CAPSTAN_RELEASE_BIN")]
    capstan_release: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "booting a system needs root: run as root");
    let mut workdir = Workdir::new("install-deb")?;
    let mut lap = Lap::start();
    let package = match options.package {
        Some(package) => package,
        None => {
            let binary = capstan::binary(options.capstan.as_deref())?;
            let packer = Packer::locate(options.capstan_release.as_deref())?;
            let package = packer.debian_package(&binary, &workdir.path().join("files")).await?;
            lap.end("packed");
            package
        }
    };
    let root = match options.root {
        Some(root) => root,
        None => debian_root(&Cache::locate()?)?,
    };
    lap.end("root");
    let mut script = Program::new("install-deb", cargo::root().join("tests/install/deb.sh"))
        .args([package, root])
        .env("TMPDIR", workdir.folder("tmp")?.to_str().context("path")?)
        .start(workdir.path())?;
    let ending = script.wait(LIMIT).await?;
    let printed = std::fs::read_to_string(script.log())?;
    match (ending, script.status()) {
        (Ending::Exited, Some(status)) if status.success() => {}
        (Ending::TimedOut, _) => bail!("timed out:\n{printed}"),
        (Ending::Exited, _) => bail!("failed:\n{printed}"),
    }
    print!("{printed}");
    lap.end("installed, run, upgraded, removed and purged");
    workdir.passed();
    Ok(())
}

/// A root file system with systemd, from Debian's mirror. Cached.
fn debian_root(cache: &Cache) -> Result<PathBuf> {
    let root = cache.folder("roots")?.join(format!("debian-{RELEASE}-systemd"));
    if root.is_dir() {
        return Ok(root);
    }
    let unfinished = root.with_extension("unfinished");
    if unfinished.is_dir() {
        std::fs::remove_dir_all(&unfinished)?;
    }
    let debootstrap = debian::unpacked("debootstrap", &cache.folder("src/debootstrap")?)?;
    debian::run(
        Command::new("sh")
            .arg(debootstrap.join("usr/sbin/debootstrap"))
            .args(["--variant=minbase", &format!("--include={PACKAGES}"), RELEASE])
            .arg(&unfinished)
            .env("DEBOOTSTRAP_DIR", debootstrap.join("usr/share/debootstrap")),
    )?;
    forget_downloads(&unfinished)?;
    std::fs::rename(&unfinished, &root)?;
    Ok(root)
}

fn forget_downloads(root: &Path) -> Result<()> {
    for folder in ["var/cache/apt/archives", "var/lib/apt/lists"] {
        let folder = root.join(folder);
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        std::fs::create_dir_all(folder.join("partial"))?;
    }
    Ok(())
}
