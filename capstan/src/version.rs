//! `capstan version`: the versions of this program and of the server.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{OutputArgs, Show, TextOptions, eprint_line};
use crate::plugins::Plugins;

/// Arguments of `capstan version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print only the version of this program
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Versions {
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

impl Show for Versions {
    fn text(&self, _: &TextOptions) -> String {
        let server = self.server.as_ref().map(|version| format!("\nserver   {version}")).unwrap_or_default();
        format!("capstan  v{}{server}", self.client)
    }

    fn names(&self) -> Vec<String> {
        vec![format!("capstan/v{}", self.client)]
    }
}

/// Prints the versions. A server that does not answer is a note, not a failure.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let server = match args.client {
        true => None,
        false => server(args, plugins)
            .map_err(|error| eprint_line(&format!("no version of the server: {error:#}; use --client")))
            .ok(),
    };
    args.output.show(&Versions { client: env!("CARGO_PKG_VERSION"), server })?;
    Ok(Exit::Done)
}

fn server(args: &Args, plugins: &Plugins) -> Result<String> {
    args.connection.run(plugins, async |management| {
        let version: Value = serde_json::from_slice(&management.client.document("/version").await?)?;
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    })
}
