//! `cargo xtask capc-on-sim`: compares the API calls of CAPC and of our CloudStack provider on equal simulated
//! clouds.
//!
//! CAPC with upstream's Cluster API on kube-apiserver brings clusters from CAPC's published template to Ready on
//! `capstan sim cloudstack`, whose machines boot by executing their user data. Then `capstan server` does the same on
//! a cloud of its own. The clouds count calls by command, until Ready and while idle.

pub mod manifest;
pub mod report;
mod side;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::bed::cloudstack::CloudStack;
use crate::bed::managers::ON_CLOUDSTACK;
use crate::bed::ports::free_port;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::cluster_api::manager::ensure_no_warnings;
use manifest::VERSION;
use report::Measured;
use side::Side;

#[derive(Debug, Args)]
pub struct Options {
    /// Only one of the two
    #[arg(long)]
    only: Option<Plane>,
    /// Duration of the idle phase in seconds
    #[arg(long, default_value_t = 180)]
    idle: u64,
    /// Only one control plane machine and one worker, without an idle phase: what CI runs
    #[arg(long)]
    short: bool,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// Whose controllers manage the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Plane {
    Capc,
    Capstan,
}

/// CAPC looks up its account with a command that ordinary users may not call.
const ACCOUNT: &str = "admin";

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("capc-on-sim")?;
    let wanted = |plane| options.only.is_none_or(|only| only == plane);
    let mut measured = Vec::new();
    if wanted(Plane::Capc) {
        measured.push(capc(&workdir.folder("capc")?, &binary, &options).await?);
    }
    if wanted(Plane::Capstan) {
        measured.push(ours(&workdir.folder("capstan")?, &binary, &options).await?);
    }
    report::print(&measured);
    if let [theirs, ours] = measured.as_slice() {
        report::judge(theirs, ours)?;
    }
    workdir.passed();
    Ok(())
}

async fn capc(folder: &Path, binary: &Path, options: &Options) -> Result<Measured> {
    println!("CAPC with Cluster API's managers on kube-apiserver");
    let mut cloud = CloudStack::start(folder, binary, VERSION, ACCOUNT).await?;
    let mut server = Server::kube(&folder.join("server"), Controllers::Plane).await?;
    let mut managers =
        Managers::start_some(&folder.join("managers"), &server.kubeconfig, &ON_CLOUDSTACK).await?;
    let api = server.api()?;
    let mut side = Side::new("CAPC", folder, &api, options);
    let measured = side.measure(&mut cloud, &mut || server.check().and_then(|()| managers.check())).await?;
    let left = cloud.leaks().await?;
    if !left.is_empty() {
        let left: BTreeSet<_> = left.iter().map(|one| format!("{} {}", one["kind"], one["name"])).collect();
        println!("  CAPC leaves behind: {left:?}");
    }
    Ok(measured)
}

async fn ours(folder: &Path, binary: &Path, options: &Options) -> Result<Measured> {
    println!("capstan server");
    let mut cloud = CloudStack::start(folder, binary, VERSION, ACCOUNT).await?;
    let mut server = Server::capstan_with(&folder.join("server"), binary, free_port()?, &[]).await?;
    let api = server.api()?;
    let mut side = Side::new("capstan", folder, &api, options);
    let measured = side.measure(&mut cloud, &mut || server.check()).await?;
    side.published(&mut cloud, &mut || server.check()).await?;
    let left = cloud.leaks().await?;
    ensure!(left.is_empty(), "capstan leaves behind: {left:?}");
    ensure_no_warnings([server.logged_warnings(), cloud.logged_warnings()])?;
    Ok(measured)
}

/// Duration of the idle phase, or `None` to skip it.
fn idle(options: &Options) -> Option<Duration> {
    (!options.short && options.idle > 0).then(|| Duration::from_secs(options.idle))
}
