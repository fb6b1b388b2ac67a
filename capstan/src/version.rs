//! `capstan version`: this program's version, and the server's.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::{How, OutputArgs, Show, talk};
use crate::plugins::Plugins;
use crate::reach::Reach;

/// Arguments of `capstan version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    reach: Reach,
    /// Ask no server
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
    fn text(&self, _: &How) -> String {
        let server = self.server.as_ref().map(|version| format!("\nserver   {version}")).unwrap_or_default();
        format!("capstan  v{}{server}", self.client)
    }

    fn names(&self) -> Vec<String> {
        vec![format!("capstan/v{}", self.client)]
    }
}

/// Says the versions. A server that cannot be asked is said and no failure.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let server = match args.client {
        true => None,
        false => server(args, plugins)
            .map_err(|error| talk(&format!("no server's version: {error:#}; --client asks none")))
            .ok(),
    };
    args.output.show(&Versions { client: env!("CARGO_PKG_VERSION"), server })?;
    Ok(Exit::Done)
}

fn server(args: &Args, plugins: &Plugins) -> Result<String> {
    args.reach.run(plugins, async |management| {
        let told: Value = serde_json::from_slice(&management.client.document("/version").await?)?;
        Ok(told["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    })
}
