//! `cargo xtask clients`: client libraries that nobody here wrote, doing what their users do.

mod python;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::bed::Flavour;

#[derive(Debug, Args)]
pub struct Options {
    /// Which server; kube-apiserver is not restarted
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    python::run(&options).await
}
