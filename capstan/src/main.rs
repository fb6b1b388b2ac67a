//! `capstan`: a Cluster API management plane in one binary.

mod assembly;
mod backup;
mod cloudstack;
mod kvm;
mod logging;
mod manager;
mod output;
mod picture;
mod server;
mod signals;
mod sim;
mod simulator;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

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
    /// Run the controllers of Cluster API on any Kubernetes
    Manager(manager::Args),
    /// Draw a cluster and its parts as a tree, with what does well folded away
    Describe(picture::DescribeArgs),
    /// Say why a cluster is not as wanted: the chain of causes, what blocks and how to mend it
    Why(picture::WhyArgs),
    /// Write a consistent copy of a server, running or not, to one file
    Backup(backup::BackupArgs),
    /// Make a new data directory from a backup
    Restore(backup::RestoreArgs),
    /// Serve a simulated cloud
    Sim(sim::Args),
    /// Balance connections to the API servers of a cluster; `--kvm` starts this by itself
    #[command(hide = true)]
    KvmBalancer(kvm::BalancerArgs),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Server(args) => server::run(args),
        Command::Manager(args) => manager::run(args),
        Command::Describe(args) => picture::describe(&args),
        Command::Why(args) => picture::why(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Sim(args) => sim::run(args),
        Command::KvmBalancer(args) => kvm::balance(args),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the one place errors reach the user")]
            {
                eprintln!("capstan: {error:#}");
            }
            std::process::ExitCode::FAILURE
        }
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
