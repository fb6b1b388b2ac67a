//! `capstan events`: what happened to a cluster and its parts.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use capstan_controller::KindName;
use capstan_view::{about, event_line, seen};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::kinds::list;
use crate::output::{How, OutputArgs, Show, talk};
use crate::picture;
use crate::plugins::Plugins;
use crate::reach::{Management, Reach};

/// How often those who follow look for more.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `capstan events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster or a machine; without it, everything in the namespace
    name: Option<String>,
    #[command(flatten)]
    reach: Reach,
    /// Only warnings
    #[arg(long)]
    warnings: bool,
    /// Go on with what happens from now on, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
struct Happened {
    items: Vec<Value>,
}

impl Show for Happened {
    fn text(&self, how: &How) -> String {
        self.items.iter().map(|event| event_line(event, how.now, how.paint) + "\n").collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |event: &Value| event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.items.iter().map(|event| format!("event/{}", name(event))).collect()
    }
}

/// Shows events, the oldest first.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.reach.run(plugins, async |management| {
        let items = happened(&management, args).await?;
        let mut shown: BTreeSet<String> = items.iter().map(edition).collect();
        if items.is_empty() {
            talk("no events; servers forget them after an hour");
        }
        args.output.show(&Happened { items })?;
        if !args.follow {
            return Ok(Exit::Done);
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = crate::signals::stop() => return Ok(Exit::Done),
            }
            let items = happened(&management, args).await?;
            let news = items.into_iter().filter(|event| shown.insert(edition(event))).collect();
            args.output.show(&Happened { items: news })?;
        }
    })
}

/// An event and how often it has repeated.
fn edition(event: &Value) -> String {
    format!("{} {}", event["metadata"]["uid"], event["series"]["count"])
}

async fn happened(management: &Management, args: &Args) -> Result<Vec<Value>> {
    let kind = KindName::namespaced("events.k8s.io", "v1", "Event", "events");
    let uids: Option<BTreeSet<String>> = match &args.name {
        Some(name) => {
            Some(picture::tree(management, name).await?.walk().map(|part| part.uid.clone()).collect())
        }
        None => None,
    };
    let mut events = list(&management.client, &kind, &management.namespace).await?;
    events.retain(|event| uids.as_ref().is_none_or(|uids| uids.contains(about(event).2)));
    events.retain(|event| !args.warnings || event["type"] == json!("Warning"));
    events.sort_by_key(|event| seen(event).map(|seen| seen.timestamp()));
    Ok(events)
}
