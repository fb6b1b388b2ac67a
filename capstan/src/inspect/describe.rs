//! `capstan describe`: a cluster as a tree; healthy parts are collapsed.

use anyhow::Result;
use capstan_view::{Tree, draw};

use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{OutputArgs, Show, TextOptions};
use crate::plugins::Plugins;

/// Arguments of `capstan describe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster or a machine
    name: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Show every part; `-o wide` does the same
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
struct ClusterTree {
    #[serde(flatten)]
    tree: Tree,
    #[serde(skip)]
    all: bool,
}

impl Show for ClusterTree {
    const HAS_COLOURS: bool = true;

    fn text(&self, options: &TextOptions) -> String {
        draw(&self.tree, self.all || options.wide, options.now, options.paint)
    }

    fn names(&self) -> Vec<String> {
        self.tree.walk().map(|part| part.title()).collect()
    }
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let tree =
        args.connection.run(plugins, async |management| super::load_tree(&management, &args.name).await)?;
    args.output.show(&ClusterTree { tree, all: args.all })?;
    Ok(Exit::Done)
}
