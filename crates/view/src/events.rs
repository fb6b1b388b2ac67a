//! Events as lines of text.

use capstan_object::Time;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use crate::printable::in_line;
use crate::text::{coloured, one_line};
use crate::{Paint, State, age};

/// When an event was last seen; reads both core/v1 and events.k8s.io/v1.
pub fn seen(event: &Value) -> Option<Time> {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["deprecatedLastTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    times.into_iter().find_map(|time| Time::deserialize(time).ok())
}

/// The object that an event is about, as (kind, name, uid).
pub fn about(event: &Value) -> (&str, &str, &str) {
    let object = if event["regarding"].is_null() { &event["involvedObject"] } else { &event["regarding"] };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    (text("kind"), text("name"), text("uid"))
}

/// One event as a line: age, type, reason, object, message.
pub fn event_line(event: &Value, now: Timestamp, paint: Paint) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let ago = seen(event).map(|seen| age(seen, now)).unwrap_or_default();
    let state = if text("type") == "Warning" { State::Failing } else { State::NoConditions };
    let reason = coloured(state, &format!("{:24}", one_line(text("reason"))), paint);
    let count = event["series"]["count"].as_i64().filter(|count| *count > 1);
    let times = count.map(|count| format!(" (×{count})")).unwrap_or_default();
    let (kind, name, _) = about(event);
    let (severity, kind, name) = (in_line(text("type")), in_line(kind), in_line(name));
    let note = if event["note"].is_null() { text("message") } else { text("note") };
    format!("{ago:>6}  {severity:7}  {reason}  {kind}/{name}: {}{times}", one_line(note))
}
