//! `cargo xtask openstack-replay`: compares the OpenStack simulator with recorded replies of real services.
//!
//! The comparison is an example of the simulator's crate: a change of the simulator builds that crate only.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cargo;

#[derive(Debug, Args)]
pub struct Options {
    /// The recording, one exchange per line [default: $CAPSTAN_OPENSTACK_GOLDEN]
    file: Option<PathBuf>,
    /// Print both replies of one case
    #[arg(long)]
    case: Option<String>,
    /// Only print differences of one service
    #[arg(long)]
    service: Option<String>,
    /// Also print explained differences
    #[arg(long)]
    verbose: bool,
}

pub fn run(options: &Options) -> Result<()> {
    let name = "openstack-replay";
    // It uses what the tests have built anyway.
    let program =
        cargo::program(".", name, &[&cargo::PROFILE[..], &["--workspace", "--example", name]].concat())?;
    let mut command = Command::new(&program);
    command.args(&options.file);
    for (flag, value) in [("--case", &options.case), ("--service", &options.service)] {
        if let Some(value) = value {
            command.args([flag, value]);
        }
    }
    if options.verbose {
        command.arg("--verbose");
    }
    let status = command.status().with_context(|| format!("run {}", program.display()))?;
    ensure!(status.success(), "the simulator differs from the recording ({status})");
    Ok(())
}
