//! The event log.

use serde_json::{Value, json};

use super::sync;
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::Result;
use crate::events::LogEntry;
use crate::render::{Fields, time};

pub(super) const COMMANDS: &[Command] = &[sync(
    "listEvents",
    "id:event type level state startdate:date enddate:date duration:number entrytime:number startid:event account domainid:domain projectid:project listall:flag",
    list,
)];

/// The first page holds the newest entries; inside a page the oldest comes first.
fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let mut shown: Vec<&LogEntry> = cloud
        .log
        .iter()
        .rev()
        .filter(|entry| {
            cloud.shows(call, scope, entry.account)
                && call.names("id", &entry.uuid())
                && call.names("type", entry.kind)
                && call.names("level", level(entry))
                && call.names("state", entry.state)
                && call.keyword_in(&[entry.kind, entry.command])
        })
        .collect();
    let count = shown.len();
    if let Some((from, size)) = call.page() {
        shown = shown.into_iter().skip(from).take(size).collect();
    }
    let entries = shown.into_iter().rev().map(|entry| cloud.show_event(entry)).collect();
    Ok(Answer::Page("event", count, entries))
}

fn level(entry: &LogEntry) -> &'static str {
    if entry.failed { "ERROR" } else { "INFO" }
}

impl Cloud {
    fn show_event(&self, entry: &LogEntry) -> Value {
        let mut fields = Fields::of(json!({
            "id": entry.uuid(),
            "username": self.users[entry.user].name,
            "type": entry.kind,
            "level": level(entry),
            "description": format!("{} {}", entry.state, entry.command),
        }));
        fields.owner(self, entry.account);
        fields.put("created", time(entry.at)).put("state", entry.state);
        fields.done()
    }
}
