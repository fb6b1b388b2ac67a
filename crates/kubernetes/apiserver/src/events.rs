//! Events have two spellings, `v1` and `events.k8s.io/v1`, of one set of objects. They are stored in the
//! older one.

use serde_json::Value;

/// Fields whose names differ: older, newer.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The event as `events.k8s.io/v1`.
pub(crate) fn to_new(mut event: Value) -> Value {
    rename(&mut event, RENAMED.iter().copied());
    if let Some(map) = event.as_object_mut() {
        // The older spelling always writes them out, the newer one only when they say something.
        map.retain(|key, value| !(key.starts_with("reporting") && *value == ""));
    }
    event["apiVersion"] = "events.k8s.io/v1".into();
    event
}

/// The event as `v1`.
pub(crate) fn to_old(mut event: Value) -> Value {
    rename(&mut event, RENAMED.iter().map(|(old, new)| (*new, *old)));
    for field in ["reportingComponent", "reportingInstance"] {
        if event[field].is_null() {
            event[field] = "".into();
        }
    }
    event["apiVersion"] = "v1".into();
    event
}

fn rename(event: &mut Value, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
    let Some(map) = event.as_object_mut() else { return };
    for (from, to) in pairs {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_the_round_trip() {
        let old = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "message": "m",
            "involvedObject": {"kind": "Pod"}, "source": {"component": "c"}, "count": 2, "type": "Normal",
            "reportingComponent": "", "reportingInstance": "", "firstTimestamp": null,
        });
        let new = to_new(old.clone());
        assert_eq!(new["note"], "m");
        assert_eq!(new["regarding"]["kind"], "Pod");
        assert_eq!(to_old(new), old);
    }
}
