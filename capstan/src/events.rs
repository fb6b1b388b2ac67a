//! `capstan events`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use capstan_controller::KindName;
use capstan_view::{about, event_line, seen};
use serde_json::{Value, json};

use crate::connection::{ConnectionArgs, Management, Reconnect};
use crate::exit::Exit;
use crate::inspect;
use crate::kinds::list;
use crate::output::{OutputArgs, Show, TextOptions, eprint_line};
use crate::plugins::Plugins;

/// Poll interval of `--follow`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `capstan events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster or a machine; all events of the namespace if not given
    name: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Only warnings
    #[arg(long)]
    warnings: bool,
    /// Print new events until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
struct EventList {
    items: Vec<Value>,
}

impl Show for EventList {
    const HAS_COLOURS: bool = true;

    fn text(&self, options: &TextOptions) -> String {
        self.items.iter().map(|event| event_line(event, options.now, options.paint) + "\n").collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |event: &Value| event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.items.iter().map(|event| format!("event/{}", name(event))).collect()
    }
}

/// Prints events, oldest first.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let mut connection = Reconnect::default();
        let items = connection.retry(matching_events(&management, args).await)?.unwrap_or_default();
        let mut shown: BTreeSet<String> = items.iter().map(occurrence).collect();
        if items.is_empty() {
            eprint_line("no events; servers delete them after an hour");
        }
        args.output.show(&EventList { items })?;
        if !args.follow {
            return Ok(Exit::Done);
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = crate::signals::stop() => return Ok(Exit::Done),
            }
            let polled = connection.retry(matching_events(&management, args).await)?;
            let items = polled.unwrap_or_default().into_iter();
            let new = items.filter(|event| shown.insert(occurrence(event))).collect();
            args.output.show(&EventList { items: new })?;
        }
    })
}

/// Identifies an event and its count.
fn occurrence(event: &Value) -> String {
    format!("{} {}", event["metadata"]["uid"], event["series"]["count"])
}

async fn matching_events(management: &Management, args: &Args) -> Result<Vec<Value>> {
    let kind = KindName::namespaced("events.k8s.io", "v1", "Event", "events");
    let uids: Option<BTreeSet<String>> = match &args.name {
        Some(name) => {
            Some(inspect::load_tree(management, name).await?.walk().map(|part| part.uid.clone()).collect())
        }
        None => None,
    };
    let mut events = list(&management.client, &kind, &management.namespace).await?;
    events.retain(|event| uids.as_ref().is_none_or(|uids| uids.contains(about(event).2)));
    events.retain(|event| !args.warnings || event["type"] == json!("Warning"));
    events.sort_by_key(|event| seen(event).map(|seen| seen.timestamp()));
    Ok(events)
}
