//! `capstan sim`: simulated clouds.

use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_provider_kit::Simulator;
use clap::{ArgMatches, Command};

use crate::output::Stdio;
use crate::plugins::Plugins;

/// The command, with a subcommand for each simulator.
pub fn command(command: Command, plugins: &Plugins) -> Command {
    let clouds = simulators(plugins).into_iter().map(|simulator| simulator.command());
    command.subcommands(clouds).subcommand_required(true).arg_required_else_help(true)
}

/// Those of the providers, and those of clouds without one.
fn simulators(plugins: &Plugins) -> Vec<Arc<dyn Simulator>> {
    plugins.simulators().cloned().chain(crate::providers::simulators()).collect()
}

/// Serves a simulated cloud until SIGTERM or Ctrl-C.
pub fn run(plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    crate::logging::start(None)?;
    let (name, flags) = matches.subcommand().context("no simulated cloud was given")?;
    let simulator = simulators(plugins).into_iter().find(|simulator| simulator.command().get_name() == name);
    let simulator = simulator.with_context(|| format!("unknown simulated cloud {name}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(simulator.run(flags, &Stdio))?)
}
