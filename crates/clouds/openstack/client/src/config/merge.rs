//! Two ways of merging: files into each other, and a profile into a cloud.

use serde_json::{Map, Value};

/// Values of the second beat those of the first; maps are merged at every level. `secure.yaml` goes into `clouds.yaml`
/// like that.
pub(super) fn deep(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => deep(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Values of the second beat those of the first as a whole, but `auth` is merged key by key. A cloud goes into its profile
/// like that.
pub(super) fn over_profile(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (key.as_str(), into.get_mut(key), value) {
            ("auth", Some(Value::Object(old)), Value::Object(new)) => {
                old.extend(new.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}
