//! Pods from templates of their controllers.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::snapshot::{controlled_by, name, namespace};

/// Alphabet of hashes in names: no vowels and no look-alikes, as upstream.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A short hash of a template.
pub(super) fn hash(template: &Value) -> String {
    let digest = Sha256::digest(template.to_string());
    digest.iter().take(10).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// A Pod of a template, controlled by its owner. The server generates the name unless the caller sets one.
pub(super) fn pod(api_version: &str, kind: &str, owner: &Value, labels: &[(&str, &str)]) -> Value {
    let template = &owner["spec"]["template"];
    let mut metadata = json!({
        "generateName": format!("{}-", name(owner)), "namespace": namespace(owner),
        "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
        "ownerReferences": controlled_by(api_version, kind, owner),
    });
    for (key, value) in labels {
        metadata["labels"][*key] = (*value).into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// A number of Pods, absolute or as a percentage.
pub(super) fn share(value: &Value, of: i64, default: &Value, round_up: bool) -> i64 {
    let value = if value.is_null() { default } else { value };
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let exact = of.saturating_mul(percent);
            if round_up { (exact + 99) / 100 } else { exact / 100 }
        }
        other => other.as_i64().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_requested() {
        for (value, of, up, expected) in [
            (json!("25%"), 2, true, 1),
            (json!("25%"), 2, false, 0),
            (json!("50%"), 3, true, 2),
            (json!(3), 10, false, 3),
            (Value::Null, 10, false, 7),
        ] {
            assert_eq!(share(&value, of, &json!(7), up), expected, "{value} of {of}");
        }
    }
}
