//! Clients that watch, and resume when the server is back.

use anyhow::{Result, bail};
use serde_json::Value;

use super::ledger::{EventKind, Seen};
use super::{END, Gate, parse_count, parse_revision};
use crate::api::Api;

/// Watches from a revision until the end marker appears. Reconnects resume after the last revision seen.
pub async fn watch(api: Api, mut gate: Gate, query: String, from: u64) -> Result<(Vec<Seen>, usize)> {
    let mut seen = Vec::new();
    let mut last = from;
    let mut resumed = 0;
    loop {
        if !gate.reopened().await {
            bail!("the run ended before the end marker was seen");
        }
        let path = format!("{query}&watch=true&allowWatchBookmarks=true&resourceVersion={last}");
        let Ok(mut events) = api.watch(&path).await else {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            continue;
        };
        resumed += 1;
        // A line truncated by the crash is not an event.
        while let Ok(Some(event)) = events.next().await {
            let object = &event["object"];
            let kind = match event["type"].as_str() {
                Some("ADDED") => EventKind::Added,
                Some("MODIFIED") => EventKind::Modified,
                Some("DELETED") => EventKind::Deleted,
                Some("BOOKMARK") => {
                    last = parse_revision(object)?;
                    continue;
                }
                _ => bail!("resumed at {last}, the server says {object}"),
            };
            last = parse_revision(object)?;
            if object["metadata"]["name"] == END {
                return Ok((seen, resumed));
            }
            seen.push(event_seen(kind, object, last)?);
        }
    }
}

fn event_seen(kind: EventKind, object: &Value, revision: u64) -> Result<Seen> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    Ok(Seen {
        kind,
        revision,
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        count: parse_count(object)?,
    })
}
