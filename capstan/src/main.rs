//! `capstan`: a Cluster API management plane in one binary.

mod backup;
mod client;
mod logging;
mod server;

use clap::{Parser, Subcommand};

/// A Cluster API management plane: a Kubernetes API with its own durable store, in one binary.
#[derive(Parser)]
#[command(name = "capstan", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the Kubernetes API from a data directory
    Server(server::Args),
    /// Write a consistent copy of a server, running or not, to one file
    Backup(backup::BackupArgs),
    /// Make a new data directory from a backup
    Restore(backup::RestoreArgs),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Server(args) => server::run(args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
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
