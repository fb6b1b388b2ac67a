//! `capstan describe`: a cluster and its parts, the healthy ones folded away.

use std::io::IsTerminal as _;

use anyhow::Result;
use capstan_view::{Paint, draw};
use jiff::Timestamp;

use super::Format;
use super::reach::Reach;

/// Arguments of `capstan describe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    reach: Reach,
    /// Show every part, not only what is not as wanted
    #[arg(long)]
    all: bool,
    /// How to write it
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Draws a cluster.
pub fn run(args: &Args) -> Result<()> {
    let tree = args.reach.tree(&args.cluster)?;
    let plain = std::env::var_os("NO_COLOR").is_some() || !std::io::stdout().is_terminal();
    let paint = if plain { Paint::Plain } else { Paint::Colours };
    args.output.write(&tree, || draw(&tree, args.all, Timestamp::now(), paint))
}
