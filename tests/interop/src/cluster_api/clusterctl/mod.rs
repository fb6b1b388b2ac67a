//! `cargo xtask clusterctl`: clusterctl against our server, with upstream's managers and with our own controllers.

mod describe;
mod identity;
mod init;
mod moved;
mod own;
mod rollout;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::bed::release::Packer;
use crate::bed::{Flavour, capstan};
use crate::cluster_api::upstream;

/// Whose controllers manage the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Upstream's Go managers.
    Upstream,
    /// Our own.
    Own,
    /// `clusterctl init` with the files of a release, on kube-apiserver.
    Init,
}

#[derive(Debug, Args)]
pub struct Options {
    /// Server for upstream's managers
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// Only one part
    #[arg(long)]
    only: Option<Part>,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// The program that packs releases [default: built with the profile `ci`]
    #[arg(long, env = "CAPSTAN_RELEASE_BIN")]
    capstan_release: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let runs = |part: Part| options.only.is_none_or(|only| only == part);
    let binary = capstan::binary(options.capstan.as_deref())?;
    if runs(Part::Own) {
        println!("our own controllers");
        own::run(&binary).await?;
    }
    if runs(Part::Init) {
        println!("clusterctl init");
        let packer = Packer::locate(options.capstan_release.as_deref())?;
        init::run(&binary, &packer).await?;
    }
    if runs(Part::Upstream) {
        println!("upstream's managers");
        upstream::clusterctl::run(options.server, &binary).await?;
    }
    Ok(())
}
