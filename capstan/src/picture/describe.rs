//! `capstan describe`: a cluster and its parts, the healthy ones folded away.

use anyhow::Result;
use capstan_view::{Tree, draw};

use crate::exit::Exit;
use crate::output::{How, OutputArgs, Show};
use crate::plugins::Plugins;
use crate::reach::Reach;

/// Arguments of `capstan describe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster, or of a machine
    name: String,
    #[command(flatten)]
    reach: Reach,
    /// Show every part, not only what is not as wanted; `-o wide` does the same
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
struct Picture {
    #[serde(flatten)]
    tree: Tree,
    #[serde(skip)]
    all: bool,
}

impl Show for Picture {
    fn text(&self, how: &How) -> String {
        draw(&self.tree, self.all || how.wide, how.now, how.paint)
    }

    fn names(&self) -> Vec<String> {
        self.tree.walk().map(|part| part.title()).collect()
    }
}

/// Draws a cluster.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let tree = args.reach.run(plugins, async |management| super::tree(&management, &args.name).await)?;
    args.output.show(&Picture { tree, all: args.all })?;
    Ok(Exit::Done)
}
