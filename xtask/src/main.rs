//! Everything a contributor runs: `cargo xtask <command>`.
//!
//! Here are code generation, peers, house rules and the choice of suites. Suites themselves need the product's crates and
//! are in `tests/interop`: every command that is not listed here is passed on to it.

mod builtin_tables;
mod interop;
mod tidy;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use capstan_test_support::{cargo, node_image, peers, text};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "everything a contributor runs",
    after_help = "every other command is a suite of tests/interop: `cargo xtask suites` lists them"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the real peers from their Go modules into a cache outside the work tree
    Peers {
        /// Only these (comma separated)
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// What the suites that `interop --plan` chose need: peers, programs and images
        #[arg(long, conflicts_with = "only")]
        planned: bool,
    },
    /// Make a root file system that machines of `capstan server --kvm` boot from
    NodeImage(node_image::Options),
    /// Make the table of built-in types anew from the pinned Go modules
    BuiltinTables(builtin_tables::Options),
    /// Check the house rules: which crate may use which, lengths of files, words
    Tidy,
    /// Run the suites that a change can affect, a smoke set and the others in turn
    Interop(interop::Options),
    /// List what tests/interop can run
    Suites,
    #[command(external_subcommand)]
    Suite(Vec<OsString>),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Peers { planned: true, .. } => interop::prepare_planned(),
        Command::Peers { only, .. } => peers::build(&only),
        Command::NodeImage(options) => node_image::run(&options),
        Command::BuiltinTables(options) => builtin_tables::run(options),
        Command::Tidy => tidy::run(),
        Command::Interop(options) => interop::run(&options),
        Command::Suites => suite(&["--help".into()]),
        Command::Suite(arguments) => suite(&arguments),
    }
}

/// Runs the program of tests/interop.
fn suite(arguments: &[OsString]) -> Result<()> {
    let program = cargo::suite_program(interop::PROGRAM)?;
    let status = std::process::Command::new(&program)
        .args(arguments)
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", arguments[0].to_string_lossy());
    }
    Ok(())
}
