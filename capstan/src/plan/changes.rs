//! What of the objects changes, in the server's own words: each is sent as a dry run and compared with what is there.

use anyhow::{Result, bail};
use capstan_controller::KindName;
use capstan_object::Key;
use serde::Serialize;
use serde_json::Value;

use crate::apply::{Applier, title};
use crate::reach::Management;

/// Fields shown of one object.
const MOST: usize = 8;
/// Letters shown of one value.
const LONGEST: usize = 60;
/// What a server writes, whatever is asked of it.
const OF_THE_SERVER: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];

/// What becomes of one object of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// `Kind/name`.
    pub object: String,
    /// What becomes of it.
    pub becomes: Becomes,
    /// Fields that change, with what they hold before and after.
    pub fields: Vec<String>,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Becomes {
    /// It is not there yet.
    Created,
    /// Fields of it change.
    Changed,
    /// It goes.
    Deleted,
}

impl Change {
    /// An object goes.
    pub fn deletion(kind: &KindName, key: &Key) -> Self {
        Self { object: format!("{}/{}", kind.kind, key.name), becomes: Becomes::Deleted, fields: Vec::new() }
    }
}

/// What the manifest changes. All that the server refuses is said at once.
pub async fn of(management: &Management, objects: &[Value]) -> Result<Vec<Change>> {
    let mut applier = Applier::new(&management.client, &management.namespace).dry();
    let mut changes = Vec::new();
    let mut refused = Vec::new();
    for object in objects {
        let after = match applier.apply(object).await {
            Ok(after) => after,
            Err(error) => {
                refused.push(format!("{error:#}"));
                continue;
            }
        };
        match applier.current(object).await? {
            None => {
                changes.push(Change { object: title(object), becomes: Becomes::Created, fields: Vec::new() })
            }
            Some(before) => {
                let fields = differences(&before, &after);
                if !fields.is_empty() {
                    changes.push(Change { object: title(object), becomes: Becomes::Changed, fields });
                }
            }
        }
    }
    match refused.as_slice() {
        [] => Ok(changes),
        all => bail!("{}", all.join("\n")),
    }
}

/// Fields that differ, status and what the server keeps aside.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let secret = after["kind"] == "Secret";
    let mut found = Vec::new();
    compare("", before, after, secret, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(path: &str, before: &Value, after: &Value, secret: bool, found: &mut Vec<String>) {
    let skipped = path == "status"
        || path.strip_prefix("metadata.").is_some_and(|field| OF_THE_SERVER.contains(&field));
    if skipped || before == after {
        return;
    }
    if let (Value::Object(old), Value::Object(new)) = (before, after) {
        let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare(&inner, &before[key.as_str()], &after[key.as_str()], secret, found);
        }
        return;
    }
    let hidden = secret && (path.starts_with("data.") || path.starts_with("stringData."));
    found.push(match hidden {
        true => format!("{path} changes"),
        false => format!("{path}: {} → {}", shown(before), shown(after)),
    });
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    capstan_view::clipped(&capstan_view::one_line(&text), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_differ_are_named_and_secrets_are_not_shown() {
        let before = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
            "spec": {"replicas": 1, "same": true}, "status": {"n": 1}});
        let after = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "2"}},
            "spec": {"replicas": 3, "same": true}, "status": {"n": 2}});
        assert_eq!(differences(&before, &after), ["metadata.labels.x: 1 → 2", "spec.replicas: 1 → 3"]);
        assert_eq!(differences(&before, &before), [""; 0]);
        let secret = |value: &str| json!({"kind": "Secret", "data": {"key": value}});
        assert_eq!(differences(&secret("b2xk"), &secret("bmV3")), ["data.key changes"]);
    }
}
