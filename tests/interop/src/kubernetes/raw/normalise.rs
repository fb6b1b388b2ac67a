//! Removes from a response what differs between servers and between runs.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::protobuf;
use crate::api::Reply;
use crate::kubernetes::varying::{numbered_uids, sorted_quotes, without_uids};

/// Headers that are compared.
const HEADERS: [&str; 8] = [
    "content-type",
    "x-content-type-options",
    "warning",
    "retry-after",
    "allow",
    "cache-control",
    "location",
    "www-authenticate",
];

/// A response in comparable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    /// The body as it came, without what varies.
    pub body: String,
}

/// How two answers differ, the gravest first.
pub fn differences(expected: &Answer, got: &Answer) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if expected.status != got.status {
        all.push(("status", format!("    - {}\n    + {}\n", expected.status, got.status)));
    }
    if expected.headers != got.headers {
        all.push(("headers", crate::diff::lines(&expected.headers, &got.headers)));
    }
    let (left, right) = (&expected.body, &got.body);
    let (left_sorted, right_sorted) = (sorted(left), sorted(right));
    if left_sorted != right_sorted || left_sorted.is_none() && numbered_uids(left) != numbered_uids(right) {
        let shown = |sorted: Option<String>, body: &str| sorted.unwrap_or_else(|| lines(body));
        let (left, right) = (shown(left_sorted, left), shown(right_sorted, right));
        all.push(("body", crate::diff::lines(&left, &right)));
    } else if left_sorted.is_some() && keys(&without_uids(&lines(left))) != keys(&without_uids(&lines(right)))
    {
        let (left, right) = (without_uids(&lines(left)), without_uids(&lines(right)));
        all.push(("key order", crate::diff::lines(&left, &right)));
    } else if spaces(left) != spaces(right) {
        all.push(("white space", format!("    - {left:?}\n    + {right:?}\n")));
    }
    all
}

/// The keys of a text with one value per line. Lists whose order is left to chance are compared without theirs.
fn keys(lines: &str) -> Vec<&str> {
    if ["managedFields", "\"resources\""].iter().any(|list| lines.contains(list)) {
        let mut top: Vec<&str> = lines.lines().filter(|line| !line.starts_with("      ")).collect();
        top.iter_mut().for_each(|line| *line = line.split(':').next().unwrap_or(line));
        return top;
    }
    lines.lines().map(|line| line.split(':').next().unwrap_or(line)).collect()
}

/// What is between the values.
fn spaces(body: &str) -> (bool, bool) {
    (body.ends_with('\n'), body.starts_with("{\n"))
}

/// A response without what varies. `host` is the address of the server. No response at all is comparable too:
/// kube-apiserver drops the connection when a handler panics.
pub fn answer(reply: &anyhow::Result<Reply>, host: &str) -> Answer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            return Answer { status: 0, headers: String::new(), body: masked(&format!("{error:#}"), host) };
        }
    };
    let mut headers = String::new();
    for name in HEADERS {
        for value in reply.headers.get_all(name) {
            headers.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
        }
    }
    let body = if reply.body.starts_with(b"k8s\0") {
        protobuf::text(&reply.body)
    } else {
        String::from_utf8_lossy(&reply.body).into_owned()
    };
    Answer { status: reply.status.as_u16(), headers: masked(&headers, host), body: masked(&body, host) }
}

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
        (r#"([rR]esourceVersion\\*"?: ?\\*"?)[1-9]\d*"#, "${1}<version>"),
        (r#"("continue": ?")[^"]+""#, "${1}<token>\""),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"(generated|GENERATED|kube-api-access)-[a-z0-9]{5}", "${1}-<suffix>"),
        (r#"("?serverAddress"?: ?)"?(<server>|[\d.:]+)"?"#, "${1}\"<address>\""),
        // The same in protobuf.
        (r#"(1: "0\.0\.0\.0/0"\n +2: )"(<server>|[\d.:]+)""#, "${1}\"<address>\""),
        (r#"(,"?)\d+[smhd](\d+[smhd])?("|\])"#, "${1}<age>${3}"),
        // The count of items that a page leaves out is exact here, an estimate there; the revision varies.
        (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=<hash>"),
        (r"(does not match the ResourceVersion in record \()\d+", "${1}<version>"),
        (r"(revision|version|rv) \d+", "${1} <version>"),
        (r"(Too large resource version: )\d+(, current: )\d+", "${1}<version>${2}<version>"),
        (r"(too old resource version: )\d+ \(\d+\)", "${1}<version>"),
        (r"v1\.36\.\d+(\+[\w.-]+)?", "<server version>"),
    ];
    rules.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

fn masked(text: &str, host: &str) -> String {
    let mut out = without_descriptions(&text.replace(host, "<server>"));
    for (pattern, with) in RULES.iter() {
        out = pattern.replace_all(&out, *with).into_owned();
    }
    out
}

/// A table in YAML without the descriptions of its columns, whose texts are ours.
fn without_descriptions(text: &str) -> String {
    if !text.starts_with("apiVersion: meta.k8s.io/") || !text.contains("\ncolumnDefinitions:\n") {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut described = false;
    for line in text.lines() {
        // A description goes on in lines that are indented more than the keys of its column, or empty.
        described =
            line.starts_with("- description:") || described && (line.is_empty() || line.starts_with("    "));
        if line.starts_with("- description:") {
            out.push_str("- description:\n");
        } else if !described {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Every JSON document of a body with sorted keys, one value per line; none if it is no JSON.
fn sorted(body: &str) -> Option<String> {
    let mut out = String::new();
    for document in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
        let mut document = document.ok()?;
        settle(&mut document);
        out.push_str(&serde_json::to_string_pretty(&document).ok()?);
        out.push('\n');
    }
    (!out.is_empty()).then(|| numbered_uids(&out))
}

/// Removes what upstream leaves to chance, and texts that are ours: descriptions of columns.
fn settle(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Entries of the same second have no order; nor have the resources of a group with custom ones.
            for list in ["managedFields", "resources"] {
                if let Some(Value::Array(entries)) = fields.get_mut(list) {
                    entries.sort_by_key(Value::to_string);
                }
            }
            // Upstream collects conflicts of field managers in a map.
            if let Some(Value::Array(causes)) = fields.get_mut("causes")
                && causes.iter().any(|cause| cause["reason"] == "FieldManagerConflict")
            {
                causes.sort_by_key(Value::to_string);
            }
            if let Some(Value::Array(columns)) = fields.get_mut("columnDefinitions") {
                for column in columns {
                    column["description"] = Value::Null;
                }
            }
            if let Some(Value::String(message)) = fields.get_mut("message") {
                *message = sorted_quotes(message);
            }
            if let Some(certificate) = fields.get_mut("ca.crt") {
                *certificate = "<certificate>".into();
            }
            fields.values_mut().for_each(settle);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        _ => {}
    }
}

/// JSON with a line break before every value, in the order of the text.
fn lines(body: &str) -> String {
    let mut out = String::new();
    let (mut quoted, mut escaped, mut depth) = (false, false, 0usize);
    for character in body.chars() {
        if quoted {
            out.push(character);
            (quoted, escaped) = match character {
                _ if escaped => (true, false),
                '\\' => (true, true),
                '"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match character {
            ' ' | '\n' | '\t' if body.starts_with(['{', '[']) => {}
            '"' => {
                quoted = true;
                out.push('"');
            }
            '{' | '[' => {
                depth += 1;
                out.push(character);
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            other => out.push(other),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        Answer { status: 200, headers: String::new(), body: masked(body, "127.0.0.1:1") }
    }

    fn what(left: &str, right: &str) -> Vec<&'static str> {
        differences(&answer(left), &answer(right)).into_iter().map(|(what, _)| what).collect()
    }

    #[test]
    fn a_difference_is_named_by_its_gravity() {
        assert!(what(r#"{"resourceVersion":"1"}"#, r#"{"resourceVersion":"2"}"#).is_empty());
        assert_eq!(what(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#), ["key order"]);
        assert_eq!(what(r#"{"a":1}"#, "{\"a\":1}\n"), ["white space"]);
        assert_eq!(what(r#"{"a":1}"#, r#"{"a":2}"#), ["body"]);
        assert_eq!(what("plain", "text"), ["body"]);
    }

    #[test]
    fn descriptions_of_columns_are_not_compared_in_yaml() {
        let table = |description: &str| {
            format!(
                "apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n- description: {description}\n  name: A\n"
            )
        };
        assert!(what(&table("ours"), &table("'theirs\n    is long'")).is_empty());
        assert_eq!(what(&table("ours"), &table("ours\n  format: x")), ["body"]);
    }

    #[test]
    fn no_resource_version_is_not_any_resource_version() {
        assert_eq!(what(r#"{"resourceVersion":"0"}"#, r#"{"resourceVersion":"2"}"#), ["body"]);
        assert_eq!(what(r#"{"resourceVersion":""}"#, r#"{"resourceVersion":"2"}"#), ["body"]);
    }
}
