//! `capstan sim`: simulated clouds.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

use crate::output::Stdio;
use crate::plugins::Plugins;

/// The command, with a subcommand for each simulator.
pub fn command(command: Command, plugins: &Plugins) -> Command {
    let clouds = plugins.simulators().map(|simulator| simulator.command());
    command.subcommands(clouds).subcommand_required(true).arg_required_else_help(true)
}

/// Serves a simulated cloud until SIGTERM or Ctrl-C.
pub fn run(plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    crate::logging::start(None)?;
    let (name, flags) = matches.subcommand().context("no simulated cloud was given")?;
    let simulator = plugins.simulators().find(|simulator| simulator.command().get_name() == name);
    let simulator = simulator.with_context(|| format!("unknown simulated cloud {name}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(simulator.run(flags, &Stdio))?)
}
