//! `capstan`: a Cluster API management plane in one binary.

mod apply;
mod assembly;
mod backup;
mod bundle;
mod change;
mod cloudstack;
mod codes;
mod console;
mod delete;
mod demo;
mod doctor;
mod events;
mod exit;
mod follow;
mod get;
mod kinds;
mod kubeconfig;
mod kvm;
mod logging;
mod manager;
mod orphans;
mod output;
mod pause;
mod picture;
mod plan;
mod reach;
#[cfg(test)]
mod reference;
mod scale;
mod server;
mod signals;
mod sim;
mod simulator;
mod up;
mod upgrade;
mod version;
mod wait;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::exit::Exit;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A Cluster API management plane: a Kubernetes API with its own durable store, and the controllers on it, in one
/// binary.
#[derive(Parser)]
#[command(name = "capstan", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the Kubernetes API from a data directory, and run the controllers of Cluster API on it
    Server(server::Args),
    /// Show it all at once: a management cluster, a simulated CloudStack, and a cluster on it in a minute
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
    Sim(sim::Args),
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
    /// Balance connections to the API servers of a cluster; `--kvm` starts this by itself
    #[command(hide = true)]
    KvmBalancer(kvm::BalancerArgs),
}

fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => {
            let _ = said.print();
            return if said.use_stderr() { Exit::Failed } else { Exit::Done }.into();
        }
    };
    run(cli.command)
        .unwrap_or_else(|error| {
            output::talk(&format!("capstan: {error:#}"));
            Exit::Failed
        })
        .into()
}

fn run(command: Command) -> Result<Exit> {
    let done = |()| Exit::Done;
    match command {
        Command::Server(args) => server::run(args).map(done),
        Command::Demo(args) => demo::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Manager(args) => manager::run(args).map(done),
        Command::Get(args) => get::run(&args),
        Command::Describe(args) => picture::describe(&args),
        Command::Why(args) => picture::why(&args),
        Command::Wait(args) => wait::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Scale(args) => scale::run(&args),
        Command::Upgrade(args) => upgrade::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Kubeconfig(args) => kubeconfig::run(&args),
        Command::Console(args) => console::run(&args),
        Command::Pause(args) => pause::pause(&args),
        Command::Resume(args) => pause::resume(&args),
        Command::Orphans(args) => orphans::run(&args),
        Command::Backup(args) => backup::backup(&args).map(done),
        Command::Restore(args) => backup::restore(&args).map(done),
        Command::Doctor(args) => doctor::run(&args),
        Command::SupportBundle(args) => bundle::run(&args),
        Command::Sim(args) => sim::run(args).map(done),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "capstan", &mut script);
            output::say(String::from_utf8_lossy(&script).trim_end()).map(done)
        }
        Command::Version(args) => version::run(&args),
        Command::DemoCloud(args) => demo::run_cloud(&args).map(done),
        Command::KvmBalancer(args) => kvm::balance(args).map(done),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn arguments_fit_together() {
        super::Cli::command().debug_assert();
    }
}
