//! Detects writes that change nothing.

use serde_json::Value;

use super::managed::{Entry, entries, seconds};

/// Restores the old times of entries when only times changed, so that a write without effect is not stored. Both
/// objects must be in their stored form.
pub fn keep_times(old: &Value, new: &mut Value) {
    // Most writes change something, and comparing is cheaper than decoding entries.
    if !equal_but_entries(old, new) {
        return;
    }
    let (Some(before), Some(after)) = (entries(old), entries(new)) else { return };
    let time = |e: &Entry| seconds(e.time.as_deref());
    if before.len() != after.len() || before.iter().map(time).eq(after.iter().map(time)) {
        return;
    }
    let same = before
        .iter()
        .zip(&after)
        .all(|(a, b)| Entry { time: None, ..a.clone() } == Entry { time: None, ..b.clone() });
    if !same {
        return;
    }
    let old = old.get("metadata").and_then(|m| m.get("managedFields")).cloned();
    if let (Some(old), Some(metadata)) = (old, new.get_mut("metadata").and_then(Value::as_object_mut)) {
        metadata.insert("managedFields".to_owned(), old);
    }
}

fn equal_but_entries(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    old.len() == new.len()
        && old.iter().all(|(key, a)| match (key.as_str(), a, new.get(key)) {
            (_, _, None) => false,
            ("metadata", Value::Object(a), Some(Value::Object(b))) => {
                let rest = |m: &serde_json::Map<String, Value>| {
                    m.len() - usize::from(m.contains_key("managedFields"))
                };
                rest(a) == rest(b) && a.iter().all(|(k, v)| k == "managedFields" || b.get(k) == Some(v))
            }
            (_, a, Some(b)) => a == b,
        })
}
