//! What varies in the text of every API server: uids, and the order of keys in a quoted object.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

static UID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok());

/// Equal uids get equal placeholders, so that owner references are still compared.
pub fn numbered_uids(text: &str) -> String {
    let Some(pattern) = UID.as_ref() else { return text.to_owned() };
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    pattern
        .replace_all(text, |found: &Captures<'_>| {
            let next = known.len() + 1;
            format!("<uid-{}>", known.entry(found[0].to_owned()).or_insert(next))
        })
        .into_owned()
}

/// All uids get one placeholder.
pub fn without_uids(text: &str) -> String {
    let pattern = UID.as_ref();
    pattern.map_or_else(|| text.to_owned(), |pattern| pattern.replace_all(text, "<uid>").into_owned())
}

/// Objects quoted in a message, with sorted keys: there, the order is that of the Go type.
pub fn sorted_quotes(text: &str) -> String {
    static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""\{(?:[^"\\]|\\.)*\}""#).ok());
    let Some(quoted) = QUOTED.as_ref() else { return text.to_owned() };
    quoted
        .replace_all(text, |found: &Captures<'_>| {
            let inner = serde_json::from_str::<String>(&found[0]).ok();
            let inner: Option<Value> = inner.and_then(|text| serde_json::from_str(&text).ok());
            inner.map_or_else(|| found[0].to_owned(), |object| Value::String(object.to_string()).to_string())
        })
        .into_owned()
}
