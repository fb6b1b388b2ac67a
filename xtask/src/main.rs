//! `cargo xtask <command>`: tasks for contributors.
//!
//! Contains code generation, builds of peers, house rules and the selection of suites. The suites need the product's
//! crates and are in `tests/interop`; other commands are passed on to it.

mod builtin_tables;
mod interop;
mod tidy;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use capstan_test_support::{cargo, node_image, peers, text};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "tasks for contributors",
    after_help = "every other command is a suite of tests/interop: `cargo xtask suites` lists them"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the real peers from their Go modules into a cache outside the repository
    Peers {
        /// Only these (comma separated)
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Build everything that the suites chosen by `interop --plan` need: peers, programs and images
        #[arg(long, conflicts_with = "only")]
        planned: bool,
    },
    /// Build the root file system for machines of `capstan server --kvm`
    NodeImage(node_image::Options),
    /// Regenerate the table of built-in types from the pinned Go modules
    BuiltinTables(builtin_tables::Options),
    /// Check the house rules: crate dependencies, file lengths, words
    Tidy,
    /// Run the suites that a change can affect, a smoke set and a rotating share of the others
    Interop(interop::Options),
    /// Build all files of a release: archives, packages, images, charts, checksums
    #[command(disable_help_flag = true)]
    Release {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<OsString>,
    },
    /// List the suites of tests/interop
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
        Command::Release { options } => {
            start(&cargo::build(".", "capstan-release", &cargo::PROFILE)?, &options)
        }
        Command::Suites => suite(&["--help".into()]),
        Command::Suite(arguments) => suite(&arguments),
    }
}

/// Runs the program of tests/interop.
fn suite(arguments: &[OsString]) -> Result<()> {
    start(&cargo::suite_program(interop::PROGRAM)?, arguments)
}

fn start(program: &Path, arguments: &[OsString]) -> Result<()> {
    let status = std::process::Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    if !status.success() {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let first = arguments.first().map(|first| first.to_string_lossy()).unwrap_or_default();
        bail!("{name} {first} failed with {status}");
    }
    Ok(())
}
