//! `cargo xtask clusterctl`: clusterctl against our server, with upstream's managers on it and with our own controllers.

mod describe;
mod identity;
mod moved;
mod own;
mod rollout;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::bed::{Flavour, capstan};
use crate::cluster_api::upstream;

/// Whose controllers look after the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Upstream's Go managers.
    Upstream,
    /// Our own.
    Own,
}

#[derive(Debug, Args)]
pub struct Options {
    /// Which server upstream's managers run on
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// One part alone
    #[arg(long)]
    only: Option<Part>,
    /// Our binary; built with the profile `ci` when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let runs = |part: Part| options.only.is_none_or(|only| only == part);
    let binary = capstan::binary(options.capstan.as_deref())?;
    if runs(Part::Own) {
        println!("our own controllers");
        own::run(&binary).await?;
    }
    if runs(Part::Upstream) {
        println!("upstream's managers");
        upstream::clusterctl::run(options.server, &binary).await?;
    }
    Ok(())
}
