//! Removes from an output what differs between servers and between runs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::kubernetes::varying::{numbered_uids, sorted_quotes};

/// Values of one side that do not count as differences.
#[derive(Clone, Debug)]
pub struct Side {
    pub url: String,
    pub folder: String,
}

/// The output of a command with everything that varies replaced.
pub fn text(raw: &str, side: &Side, masks: &[Regex], sorted: bool) -> String {
    let raw = &sorted_keys(raw);
    let host = side.url.trim_start_matches("https://");
    let mut out =
        raw.replace(&side.url, "<server>").replace(host, "<server>").replace(&side.folder, "<folder>");
    for mask in masks {
        out = mask.replace_all(&out, "<masked>").into_owned();
    }
    out = numbered_uids(&out);
    for (pattern, with) in RULES.iter() {
        out = pattern.replace_all(&out, *with).into_owned();
    }
    if sorted {
        let mut lines: Vec<_> = out.lines().collect();
        lines.sort_unstable();
        out = lines.join("\n");
    }
    out
}

/// The order of keys in JSON is not guaranteed: neither in a raw response nor in an object quoted by an error.
fn sorted_keys(raw: &str) -> String {
    if let Ok(whole @ Value::Object(_)) = serde_json::from_str(raw) {
        return serde_json::to_string_pretty(&whole).unwrap_or_default();
    }
    sorted_quotes(raw)
}

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // kubectl's own log lines have time, process id and source line.
        (r"(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ ([\w.]+):\d+\]", "<log> $1]"),
        // `kubectl wait` ends its own watch, and logs it when an event arrives at that moment.
        (r#"(?m)^<log> reflector\.go\] "Warning: watch ended with error".*context canceled.*\n"#, ""),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
        (r#"(resourceVersion\\*"?: ?\\*"?)\d+"#, "${1}<version>"),
        (r"(?m)^(\s*Resource Version:\s+)\d+", "${1}<version>"),
        (r"(?m)^(\s*Creation Timestamp:\s+|\s*Deletion Timestamp:\s+|\s*Time:\s+).*$", "${1}<time>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        // Ages in tables, then the padding that depends on them.
        (r"(?m)([ \t]|^)(\d+d)?(\d+h)?(\d+m)?(\d+s|\d+m|\d+h|\d+d)([ \t]|$)", "${1}<age>${6}"),
        (r"<invalid>", "<age>"),
        (r"[ \t]{2,}", "  "),
        (r"(?m)[ \t]+$", ""),
    ];
    rules.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// Stored objects as text, by namespace and name: keys sorted, one value per line, uids replaced by the name of their
/// object.
pub fn objects(mut list: Value, side: &Side) -> BTreeMap<String, String> {
    let Some(items) = list["items"].as_array_mut() else { return BTreeMap::new() };
    let name = |item: &Value| {
        let part = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("namespace"), part("name"))
    };
    let owners: Vec<(String, String)> = items
        .iter()
        .filter_map(|item| {
            Some((item["metadata"]["uid"].as_str()?.to_owned(), format!("<uid of {}>", name(item))))
        })
        .collect();
    let mut all = BTreeMap::new();
    for item in items {
        object(item);
        let mut shown = serde_json::to_string_pretty(item).unwrap_or_default();
        for (uid, owner) in &owners {
            shown = shown.replace(uid, owner);
        }
        all.insert(name(item), text(&shown, side, &[], false));
    }
    all
}

fn object(item: &mut Value) {
    let Some(fields) = item.as_object_mut() else { return };
    // Upstream omits these in lists of built-in kinds. That is the encoding, not the stored object.
    fields.remove("apiVersion");
    fields.remove("kind");
    // Entries of the same second have no order.
    if let Some(entries) = item.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        let part = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        entries.sort_by_key(|entry| {
            ["operation", "manager", "apiVersion", "subresource"].map(|field| part(entry, field))
        });
    }
    // Written by the server's own controllers, which are a separate program upstream.
    if item["metadata"]["name"] == "kube-root-ca.crt" {
        item["data"]["ca.crt"] = "<certificate>".into();
        if let Some(metadata) = item["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side() -> Side {
        Side { url: "https://127.0.0.1:6443".into(), folder: "/tmp/x".into() }
    }

    #[test]
    fn varying_output_becomes_equal() {
        let cases = [
            ("NAME   AGE\na      5s\n", "NAME    AGE\na       12m30s\n"),
            ("resourceVersion: \"12\"", "resourceVersion: \"4711\""),
            ("uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "uid: 6fa459ea-ee8a-3ca4-894e-db77e160355e"),
            ("at 2026-01-02T03:04:05Z", "at 2027-01-02T03:04:05.123456Z"),
            ("E1115 05:16:23.123456   12 a.go:3] x", "E1116 07:16:23.123456    9 a.go:4] x"),
        ];
        for (left, right) in cases {
            assert_eq!(text(left, &side(), &[], false), text(right, &side(), &[], false));
        }
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        let (left, right) = (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#);
        assert_eq!(text(left, &side(), &[], false), text(right, &side(), &[], false));
        let quote = |inner: &str| format!("Invalid value: {}: no", Value::String(inner.to_owned()));
        assert_eq!(text(&quote(left), &side(), &[], false), text(&quote(right), &side(), &[], false));
    }

    #[test]
    fn an_owner_must_still_be_the_owner() {
        let same = "uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427\nowner: 1b4e28ba-2fa1-11d2-883f-0016d3cca427";
        let other = "uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427\nowner: 6fa459ea-ee8a-3ca4-894e-db77e160355e";
        assert_ne!(text(same, &side(), &[], false), text(other, &side(), &[], false));
    }

    #[test]
    fn values_are_not_taken_for_ages() {
        assert_eq!(text("data: x5s\nport: 80", &side(), &[], false), "data: x5s\nport: 80");
    }
}
