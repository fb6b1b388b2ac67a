//! Everything a contributor runs: `cargo xtask <command>`.
//!
//! Suites here hold Capstan against real programs that nobody in this project wrote. A suite that cannot find its
//! peer fails with the command that builds it; it never passes by skipping.

mod api;
mod bed;
mod peers;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use bed::Flavour;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "everything a contributor runs")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the real peers from their Go modules into a cache outside the work tree
    Peers {
        /// Only these (comma separated); `ci` stands for what `interop` needs
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Start an API server on loopback and keep it until interrupted
    Bed {
        /// Which server
        #[arg(default_value = "capstan")]
        server: Flavour,
        /// Also run Cluster API's four managers against it
        #[arg(long)]
        managers: bool,
        /// Our binary; built in release mode when not given
        #[arg(long)]
        capstan: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    bed::process::end_with_children_on_signals()?;
    match command {
        Command::Peers { only } => peers::build(&only),
        Command::Bed { server, managers, capstan } => bed::hold(server, managers, capstan).await,
    }
}
