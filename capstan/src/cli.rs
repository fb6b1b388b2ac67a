//! The command line: commands, and the module that runs each.

use std::process::ExitCode;

use anyhow::Result;
use capstan_provider_kit::Plugin;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::Exit;
use crate::output::{Stdio, eprint_line, print_as_it_is};
use crate::plugins::Plugins;
use crate::{
    adopt, audit, backup, bundle, completion, console, delete, demo, doctor, encryption, events, generate,
    get, init, inspect, kubeconfig, logging, manager, orphans, pause, plan, release_files, scale, server,
    set, sim, store, top, up, upgrade, version, wait,
};

/// A Cluster API management plane in one binary: a Kubernetes API with its own durable store, and the controllers.
#[derive(Parser)]
#[command(name = "capstan", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the Kubernetes API from a data directory and run the Cluster API controllers
    Server(server::Args),
    #[command(about = demo::ABOUT)]
    Demo(demo::Args),
    /// Write credentials and manifest of a first cluster, with what a cloud has to offer
    Init(init::Args),
    /// Print manifests from templates
    Generate(generate::Args),
    /// Apply a manifest and follow its cluster until it is ready
    Up(up::Args),
    /// Preview a change: the same controllers run on a copy of the clusters, in simulated time
    Plan(plan::Args),
    /// Run the Cluster API controllers on any Kubernetes
    Manager(manager::Args),
    /// List clusters, machines or other Cluster API objects with their state
    Get(get::Args),
    /// Show a cluster as a tree; healthy parts are collapsed
    Describe(inspect::DescribeArgs),
    /// Explain why a cluster is not ready: what blocks it, the fix, who can fix it, and the chain of causes
    Why(inspect::WhyArgs),
    /// Wait until a cluster or a machine is ready, is deleted, or has a condition
    Wait(wait::Args),
    /// Show the events of a cluster and its parts
    Events(events::Args),
    /// Change the number of machines of a cluster
    Scale(scale::Args),
    /// Upgrade Kubernetes in a cluster, control plane first
    Upgrade(upgrade::Args),
    /// Change the infrastructure of a cluster, or the machines of a part of it
    Set(set::Args),
    /// Delete a cluster with everything that belongs to it, or a machine, which its owner replaces
    Delete(delete::Args),
    /// Print the kubeconfig of a cluster, or merge it into a file
    Kubeconfig(kubeconfig::Args),
    /// Print the console output of a machine
    Console(console::Args),
    /// Stop reconciling a cluster until it is resumed
    Pause(pause::Args),
    /// Reconcile a paused cluster again
    Resume(pause::ResumeArgs),
    /// Find drift between records, workload clusters and clouds; deletes nothing without --delete
    Orphans(orphans::Args),
    /// Take over clusters of another management cluster: import them locked, preview, unlock or give back
    Adopt(adopt::Args),
    /// Back up a server, running or stopped, to one file
    Backup(backup::BackupArgs),
    /// Create a data directory from a backup
    Restore(backup::RestoreArgs),
    /// Repair the store of a data directory
    Store(store::Args),
    /// Show and change the encryption of a data directory
    Encryption(encryption::Args),
    /// Check an audit log
    Audit(audit::Args),
    /// Check a management cluster and suggest fixes
    Doctor(doctor::Args),
    /// Show clusters, the queues and retries of the controllers, and calls to clouds
    Top(top::Args),
    /// Collect a support bundle; secrets are redacted
    SupportBundle(bundle::Args),
    /// Serve a simulated cloud
    Sim,
    /// Print the completion script of a shell
    Completion {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the versions of this program and of the server
    Version(version::Args),
    /// Serve the simulated cloud of `demo`, which starts this itself
    #[command(hide = true)]
    DemoCloud(demo::CloudArgs),
    /// Write man pages, completion scripts and definitions for a release
    #[command(hide = true)]
    ReleaseFiles(release_files::Args),
}

/// The whole command line, with the commands and flags of the providers.
pub fn command(plugins: &Plugins) -> Command {
    let command = Cli::command().mut_subcommands(|verb| match verb.get_name() {
        "server" => server::command(plugins.arguments(verb), plugins),
        "manager" => plugins.arguments(verb),
        "console" => console::command(verb, plugins),
        "sim" => sim::command(verb, plugins),
        _ => verb,
    });
    command.subcommands(plugins.commands().into_iter().map(|extra| extra.command))
}

/// Parses the arguments of the process and runs the command.
pub fn run(plugins: Vec<Plugin>) -> ExitCode {
    let plugins = Plugins::new(plugins);
    let matches = match command(&plugins).try_get_matches() {
        Ok(matches) => matches,
        Err(usage) => {
            let _ = usage.print();
            return if usage.use_stderr() { Exit::Failed } else { Exit::Done }.into();
        }
    };
    run_command(&plugins, &matches)
        .unwrap_or_else(|error| {
            eprint_line(&format!("capstan: {error:#}"));
            Exit::Failed
        })
        .into()
}

fn run_command(plugins: &Plugins, matches: &ArgMatches) -> Result<Exit> {
    let done = |()| Exit::Done;
    let (name, of_verb) = matches.subcommand().unwrap_or(("", matches));
    if let Some(extra) = plugins.commands().into_iter().find(|it| it.command.get_name() == name) {
        logging::start(None)?;
        (extra.run)(of_verb, &Stdio)?;
        return Ok(Exit::Done);
    }
    match Cli::from_arg_matches(matches)?.verb {
        Verb::Server(args) => server::run(args, plugins, of_verb).map(done),
        Verb::Demo(args) => demo::run(&args, plugins),
        Verb::Init(args) => init::run(&args, plugins),
        Verb::Generate(args) => generate::run(&args, plugins),
        Verb::Up(args) => up::run(&args, plugins),
        Verb::Plan(args) => plan::run(&args, plugins),
        Verb::Manager(args) => manager::run(args, plugins, of_verb).map(done),
        Verb::Get(args) => get::run(&args, plugins),
        Verb::Describe(args) => inspect::describe(&args, plugins),
        Verb::Why(args) => inspect::why(&args, plugins),
        Verb::Wait(args) => wait::run(&args, plugins),
        Verb::Events(args) => events::run(&args, plugins),
        Verb::Scale(args) => scale::run(&args, plugins),
        Verb::Upgrade(args) => upgrade::run(&args, plugins),
        Verb::Set(args) => set::run(&args, plugins),
        Verb::Delete(args) => delete::run(&args, plugins),
        Verb::Kubeconfig(args) => kubeconfig::run(&args, plugins),
        Verb::Console(args) => console::run(&args, plugins, of_verb),
        Verb::Pause(args) => pause::pause(&args, plugins),
        Verb::Resume(args) => pause::resume(&args, plugins),
        Verb::Orphans(args) => orphans::run(&args, plugins),
        Verb::Adopt(args) => adopt::run(&args, plugins),
        Verb::Backup(args) => backup::backup(&args).map(done),
        Verb::Restore(args) => backup::restore(&args).map(done),
        Verb::Store(args) => store::run(&args),
        Verb::Encryption(args) => encryption::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Doctor(args) => doctor::run(&args, plugins),
        Verb::Top(args) => top::run(&args, plugins),
        Verb::SupportBundle(args) => bundle::run(&args, plugins),
        Verb::Sim => sim::run(plugins, of_verb).map(done),
        Verb::Completion { shell } => {
            print_as_it_is(completion::script(shell, command(plugins)).trim_end()).map(done)
        }
        Verb::Version(args) => version::run(&args, plugins),
        Verb::DemoCloud(args) => demo::run_cloud(&args, plugins).map(done),
        Verb::ReleaseFiles(args) => release_files::run(&args, command(plugins), plugins).map(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        command(&Plugins::new(crate::providers())).debug_assert();
    }
}
