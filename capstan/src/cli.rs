//! The command line: what the program takes, and which module answers.

use std::process::ExitCode;

use anyhow::Result;
use capstan_provider_kit::Plugin;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::Exit;
use crate::output::{Stdio, say, talk};
use crate::plugins::Plugins;
use crate::{
    backup, bundle, console, delete, demo, doctor, events, get, kubeconfig, logging, manager, orphans, pause,
    picture, plan, scale, server, sim, up, upgrade, version, wait,
};

/// A Cluster API management plane: a Kubernetes API with its own durable store, and the controllers on it, in one
/// binary.
#[derive(Parser)]
#[command(name = "capstan", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the Kubernetes API from a data directory, and run the controllers of Cluster API on it
    Server(server::Args),
    #[command(about = demo::ABOUT)]
    Demo(demo::Args),
    /// Apply a manifest and follow its cluster until it is ready
    Up(up::Args),
    /// Say what a manifest would do: the same controllers run on a copy of the clusters, in simulated time
    Plan(plan::Args),
    /// Run the controllers of Cluster API on any Kubernetes
    Manager(manager::Args),
    /// List clusters, machines or other objects of Cluster API, with how they do
    Get(get::Args),
    /// Draw a cluster and its parts as a tree, with what does well folded away
    Describe(picture::DescribeArgs),
    /// Say why a cluster is not as wanted: the chain of causes, what blocks and how to mend it
    Why(picture::WhyArgs),
    /// Wait until a cluster or a machine is ready, deleted, or has a condition
    Wait(wait::Args),
    /// Show what happened to a cluster and its parts
    Events(events::Args),
    /// Change how many machines a cluster has
    Scale(scale::Args),
    /// Change a cluster's version of Kubernetes, control plane first
    Upgrade(upgrade::Args),
    /// Delete a cluster with everything that belongs to it
    Delete(delete::Args),
    /// Print the kubeconfig of a cluster, or merge it into a file
    Kubeconfig(kubeconfig::Args),
    /// Print what a machine has written to its console
    Console(console::Args),
    /// Have controllers leave a cluster alone, until it is resumed
    Pause(pause::Args),
    /// Have controllers look after a paused cluster again
    Resume(pause::ResumeArgs),
    /// Compare records with workload clusters and clouds, and say what differs; removes nothing unless told to
    Orphans(orphans::Args),
    /// Write a consistent copy of a server, running or not, to one file
    Backup(backup::BackupArgs),
    /// Make a new data directory from a backup
    Restore(backup::RestoreArgs),
    /// Look whether a management cluster is in order, and say what to do if not
    Doctor(doctor::Args),
    /// Gather what somebody needs who is to help, without anything secret
    SupportBundle(bundle::Args),
    /// Serve a simulated cloud
    Sim,
    /// Print the completion script of a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Say the versions of this program and of the server
    Version(version::Args),
    /// Be the cloud of `demo`, which starts this by itself
    #[command(hide = true)]
    DemoCloud(demo::CloudArgs),
}

/// The whole command line, with what the providers add to it.
pub fn command(plugins: &Plugins) -> Command {
    let command = Cli::command().mut_subcommands(|verb| match verb.get_name() {
        "server" => server::command(plugins.arguments(verb), plugins),
        "manager" => plugins.arguments(verb),
        "console" => console::command(verb, plugins),
        "sim" => sim::command(verb, plugins),
        _ => verb,
    });
    command.subcommands(plugins.commands().into_iter().map(|further| further.command))
}

/// Runs the program with these clouds, by its arguments, to its end.
pub fn run(plugins: Vec<Plugin>) -> ExitCode {
    let plugins = Plugins::new(plugins);
    let matches = match command(&plugins).try_get_matches() {
        Ok(matches) => matches,
        Err(said) => {
            let _ = said.print();
            return if said.use_stderr() { Exit::Failed } else { Exit::Done }.into();
        }
    };
    answer(&plugins, &matches)
        .unwrap_or_else(|error| {
            talk(&format!("capstan: {error:#}"));
            Exit::Failed
        })
        .into()
}

fn answer(plugins: &Plugins, matches: &ArgMatches) -> Result<Exit> {
    let done = |()| Exit::Done;
    let (name, of_verb) = matches.subcommand().unwrap_or(("", matches));
    if let Some(further) = plugins.commands().into_iter().find(|it| it.command.get_name() == name) {
        logging::start();
        (further.run)(of_verb, &Stdio)?;
        return Ok(Exit::Done);
    }
    match Cli::from_arg_matches(matches)?.verb {
        Verb::Server(args) => server::run(args, plugins, of_verb).map(done),
        Verb::Demo(args) => demo::run(&args, plugins),
        Verb::Up(args) => up::run(&args, plugins),
        Verb::Plan(args) => plan::run(&args, plugins),
        Verb::Manager(args) => manager::run(args, plugins, of_verb).map(done),
        Verb::Get(args) => get::run(&args, plugins),
        Verb::Describe(args) => picture::describe(&args, plugins),
        Verb::Why(args) => picture::why(&args, plugins),
        Verb::Wait(args) => wait::run(&args, plugins),
        Verb::Events(args) => events::run(&args, plugins),
        Verb::Scale(args) => scale::run(&args, plugins),
        Verb::Upgrade(args) => upgrade::run(&args, plugins),
        Verb::Delete(args) => delete::run(&args, plugins),
        Verb::Kubeconfig(args) => kubeconfig::run(&args, plugins),
        Verb::Console(args) => console::run(&args, plugins, of_verb),
        Verb::Pause(args) => pause::pause(&args, plugins),
        Verb::Resume(args) => pause::resume(&args, plugins),
        Verb::Orphans(args) => orphans::run(&args, plugins),
        Verb::Backup(args) => backup::backup(&args).map(done),
        Verb::Restore(args) => backup::restore(&args).map(done),
        Verb::Doctor(args) => doctor::run(&args, plugins),
        Verb::SupportBundle(args) => bundle::run(&args, plugins),
        Verb::Sim => sim::run(plugins, of_verb).map(done),
        Verb::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(plugins), "capstan", &mut script);
            say(String::from_utf8_lossy(&script).trim_end()).map(done)
        }
        Verb::Version(args) => version::run(&args, plugins),
        Verb::DemoCloud(args) => demo::run_cloud(&args, plugins).map(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fit_together() {
        command(&Plugins::new(crate::providers())).debug_assert();
    }
}
