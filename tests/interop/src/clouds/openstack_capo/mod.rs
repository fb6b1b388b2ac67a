//! `cargo xtask openstack-capo`: compares the API calls of CAPO and of our OpenStack provider on equal simulated clouds.
//!
//! CAPO with upstream's Cluster API on kube-apiserver brings clusters from CAPO's published template to Available on
//! `capstan sim openstack`, whose servers boot by executing their user data, and deletes them. Then `capstan server`
//! does the same on a cloud of its own. The clouds count calls by service, method and path, until Available and while
//! idle. Neither plane may leave anything in its cloud.

mod manifest;
mod side;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::capc_on_sim::report::{self, Measured};
use crate::bed::managers::ON_OPENSTACK;
use crate::bed::openstack::OpenStack;
use crate::bed::ports::free_port;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::cluster_api::manager::ensure_no_warnings;
use manifest::VERSION;
use side::Side;

#[derive(Debug, Args)]
pub struct Options {
    /// Only one of the two
    #[arg(long)]
    only: Option<Plane>,
    /// Duration of the idle phase in seconds
    #[arg(long, default_value_t = 180)]
    idle: u64,
    /// Only one control plane machine and one worker, without an idle phase
    #[arg(long)]
    short: bool,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// Whose controllers manage the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Plane {
    Capo,
    Capstan,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("openstack-capo")?;
    let wanted = |plane| options.only.is_none_or(|only| only == plane);
    let mut measured = Vec::new();
    if wanted(Plane::Capo) {
        measured.push(capo(&workdir.folder("capo")?, &binary, &options).await?);
    }
    if wanted(Plane::Capstan) {
        measured.push(ours(&workdir.folder("capstan")?, &binary, &options).await?);
    }
    report::print(&measured);
    if let [theirs, ours] = measured.as_slice() {
        report::print_ratios(theirs, ours);
        judge(theirs, ours)?;
    }
    workdir.passed();
    Ok(())
}

async fn capo(folder: &Path, binary: &Path, options: &Options) -> Result<Measured> {
    println!("CAPO with Cluster API's managers on kube-apiserver");
    let mut cloud = OpenStack::start(folder, binary, VERSION).await?;
    let mut server = Server::kube(&folder.join("server"), Controllers::Plane).await?;
    let mut managers =
        Managers::start_some(&folder.join("managers"), &server.kubeconfig, &ON_OPENSTACK).await?;
    let api = server.api()?;
    let side = Side::new("CAPO", folder, &api, options);
    let measured = side.measure(&mut cloud, &mut || server.check().and_then(|()| managers.check())).await?;
    ensure_empty("CAPO", &cloud).await?;
    ensure_no_warnings([cloud.logged_warnings()])?;
    Ok(measured)
}

async fn ours(folder: &Path, binary: &Path, options: &Options) -> Result<Measured> {
    println!("capstan server");
    let mut cloud = OpenStack::start(folder, binary, VERSION).await?;
    let mut server = Server::capstan_with(&folder.join("server"), binary, free_port()?, &[]).await?;
    let api = server.api()?;
    let side = Side::new("capstan", folder, &api, options);
    let measured = side.measure(&mut cloud, &mut || server.check()).await?;
    ensure_empty("capstan", &cloud).await?;
    ensure_no_warnings([server.logged_warnings(), cloud.logged_warnings()])?;
    Ok(measured)
}

async fn ensure_empty(plane: &str, cloud: &OpenStack) -> Result<()> {
    let left = cloud.leaks().await?;
    let left: Vec<_> = left.iter().map(|one| format!("{} {}", one["kind"], one["name"])).collect();
    ensure!(left.is_empty(), "{plane} leaves behind: {}", left.join(", "));
    Ok(())
}

/// The least factor by which we make fewer calls until a cluster is Available.
const FACTOR: u64 = 4;
/// Lists that our provider reads every minute while nothing changes, for all clusters of a project: servers, ports, floating
/// IPs, security groups and load balancers.
const EACH_MINUTE: u64 = 5;
/// Lists that it reads every ten minutes.
const SELDOM: u64 = 8;

/// Fails if we exceed our limits.
fn judge(theirs: &Measured, ours: &Measured) -> Result<()> {
    let phases = [
        ("1+1", Some(&theirs.small), Some(&ours.small)),
        ("3+3", theirs.large.as_ref(), ours.large.as_ref()),
    ];
    for (name, theirs, ours) in phases {
        let (Some(theirs), Some(ours)) = (theirs, ours) else { continue };
        let (many, few) = (theirs.calls.total(), ours.calls.total());
        ensure!(
            few * FACTOR <= many,
            "a cluster of {name} takes {few} calls, more than 1/{FACTOR} of {many}"
        );
    }
    // CAPO looks at OpenStack only when an object changes or is read again after `--sync-period`, so what it does in a few
    // minutes is no measure.
    if let Some(idle) = &ours.idle {
        let minutes = idle.took.as_secs() / 60 + 1;
        let (count, most) = (idle.calls.total(), minutes * EACH_MINUTE + (minutes / 10 + 1) * SELDOM);
        ensure!(count <= most, "{count} calls in {minutes} idle minutes, more than {most}");
    }
    Ok(())
}

/// Duration of the idle phase, or `None` to skip it.
fn idle(options: &Options) -> Option<Duration> {
    (!options.short && options.idle > 0).then(|| Duration::from_secs(options.idle))
}
