//! `capstan console`: the console output of a machine.

use anyhow::{Context, Result, bail};
use capstan_capi_types::core::Machine;
use capstan_object::Key;
use capstan_provider_kit::ConsoleReader;
use clap::{ArgMatches, Command};
use serde_json::Value;

use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::get;
use crate::output::print_line;
use crate::plugins::Plugins;

/// Arguments of `capstan console`; providers add theirs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the machine
    machine: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

fn readers(plugins: &Plugins) -> impl Iterator<Item = &dyn ConsoleReader> {
    plugins.providers().filter_map(|provider| provider.console())
}

/// The command, with the flags of the providers' console readers.
pub fn command(command: Command, plugins: &Plugins) -> Command {
    readers(plugins).fold(command, |command, reader| reader.arguments(command))
}

/// The flags of the providers' console readers with their defaults.
pub fn defaults(plugins: &Plugins) -> ArgMatches {
    command(Command::new("console"), plugins).get_matches_from(["console"])
}

/// Prints the console of a machine.
pub fn run(args: &Args, plugins: &Plugins, matches: &ArgMatches) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        print_line(read(&management, plugins, &args.machine, matches).await?.trim_end())?;
        Ok(Exit::Done)
    })
}

/// What a machine printed.
pub async fn read(
    management: &Management,
    plugins: &Plugins,
    name: &str,
    matches: &ArgMatches,
) -> Result<String> {
    let machine: Machine = management.find(name).await?;
    let reference = &machine.spec.infrastructure_ref;
    let object = infrastructure(management, &reference.kind, &reference.name).await?;
    let Some(reader) = readers(plugins).find(|reader| reader.kind() == reference.kind) else {
        bail!(
            "consoles of {} cannot be read from here: open machine {name} ({}) in the cloud's own interface",
            reference.kind,
            object["spec"]["providerID"].as_str().unwrap_or("no provider id yet")
        );
    };
    Ok(reader.read(&management.client, name, &object, matches).await?)
}

async fn infrastructure(management: &Management, kind: &str, name: &str) -> Result<Value> {
    let kind = get::kind(management, kind).await?;
    let found = management.client.get_raw(&kind, &Key::new(&management.namespace, name)).await?;
    Ok(found.with_context(|| format!("{} {name} does not exist yet", kind.kind))?.parse()?)
}
