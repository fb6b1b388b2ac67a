//! The corpus: requests as data, and families of requests that a few lines describe.
//!
//! A file in `tests/raw-parity/requests` is a sequence of requests in a namespace of its own. `each` repeats a request
//! for every combination of the given values; `$(name)` inserts a value, `$(ns)` the namespace, and `$(name.part)` a
//! part of a value that has several.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::Value;

/// Requests of one subject, which build on each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// File name without number and extension.
    #[serde(skip)]
    pub name: String,
    /// What its requests have in common.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    /// Lists of values that `each` refers to by name.
    #[serde(default)]
    sets: BTreeMap<String, Vec<Value>>,
    requests: Vec<Family>,
}

/// A request, or many that differ in some values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    /// Method and path with query.
    send: String,
    /// Values by name: a list, or the name of a set.
    #[serde(default)]
    each: BTreeMap<String, Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Content type: a word like `merge`, or the type itself.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// Body, sent as JSON.
    #[serde(default)]
    json: Option<Value>,
    /// Body, sent as it is.
    #[serde(default)]
    text: Option<String>,
    /// Body in base64.
    #[serde(default)]
    base64: Option<String>,
    /// Without a client certificate.
    #[serde(default)]
    anonymous: bool,
    /// Prepares later requests: not compared, not counted.
    #[serde(default)]
    quiet: bool,
    /// Repeated until the body contains this text, for what controllers do.
    #[serde(default)]
    until: Option<String>,
    /// Values of the response for later requests: JSON pointers by name.
    #[serde(default)]
    save: BTreeMap<String, String>,
}

/// One request. Values saved from responses are not inserted yet: they differ between the servers.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Body,
    pub anonymous: bool,
    pub quiet: bool,
    pub until: Option<String>,
    pub save: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Text(String),
    Bytes(Vec<u8>),
}

impl Request {
    /// The request in one line, as reports and explanations name it.
    pub fn label(&self) -> String {
        let mut out = format!("{} {}", self.method, self.path);
        for (name, value) in &self.headers {
            out.push_str(&format!(" [{name}: {value}]"));
        }
        if self.anonymous {
            out.push_str(" [anonymous]");
        }
        match &self.body {
            Body::None => {}
            Body::Text(text) => out.push_str(&format!(" {}", shortened(text))),
            Body::Bytes(bytes) => out.push_str(&format!(" {}", shortened(&BASE64.encode(bytes)))),
        }
        out
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 400;
    let line = text.replace('\n', "\\n");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl File {
    pub fn namespace(&self) -> String {
        format!("raw-{}", self.name)
    }

    /// Every request, in order.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let mut all = Vec::new();
        for family in &self.requests {
            let made = self.expanded(family).with_context(|| format!("{}: {}", self.name, family.send))?;
            all.extend(made);
        }
        Ok(all)
    }

    fn expanded(&self, family: &Family) -> Result<Vec<Request>> {
        let mut rows = vec![BTreeMap::from([("ns".to_owned(), self.namespace())])];
        for (name, values) in &family.each {
            let values = match values {
                Value::String(set) => self.sets.get(set).with_context(|| format!("no set {set}"))?,
                Value::Array(values) => values,
                _ => bail!("each.{name} must be a list or the name of a set"),
            };
            let longer = rows.iter().flat_map(|row| values.iter().map(move |value| with(row, name, value)));
            rows = longer.collect();
        }
        rows.iter().map(|row| family.request(row)).collect()
    }
}

fn with(row: &BTreeMap<String, String>, name: &str, value: &Value) -> BTreeMap<String, String> {
    let mut row = row.clone();
    match value {
        Value::Object(parts) => {
            row.extend(parts.iter().map(|(part, value)| (format!("{name}.{part}"), plain(value))));
        }
        value => {
            row.insert(name.to_owned(), plain(value));
        }
    }
    row
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Family {
    fn request(&self, row: &BTreeMap<String, String>) -> Result<Request> {
        let send = insert(&self.send, row);
        let (method, path) = send.split_once(' ').context("send is a method and a path")?;
        ensure!(path.starts_with('/'), "the path of {send:?} must start with a slash");
        let mut headers: BTreeMap<String, String> =
            self.headers.iter().map(|(name, value)| (name.clone(), insert(value, row))).collect();
        let body = match (&self.json, &self.text, &self.base64) {
            (None, None, None) => Body::None,
            (Some(json), None, None) => Body::Text(insert(&json.to_string(), row)),
            (None, Some(text), None) => Body::Text(insert(text, row)),
            (None, None, Some(data)) => Body::Bytes(BASE64.decode(insert(data, row).trim())?),
            _ => bail!("a request has one of json, text and base64"),
        };
        let kind = match &self.kind {
            Some(kind) => Some(insert(kind, row)),
            None if self.json.is_some() => Some("json".to_owned()),
            None => None,
        };
        // An empty one sends a body without a content type.
        if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
            headers.insert("content-type".to_owned(), media_type(&kind).to_owned());
        }
        Ok(Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            anonymous: self.anonymous,
            quiet: self.quiet,
            until: self.until.clone(),
            save: self.save.clone(),
        })
    }
}

fn media_type(word: &str) -> &str {
    match word {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "protobuf" => "application/vnd.kubernetes.protobuf",
        "merge" => "application/merge-patch+json",
        "json-patch" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

/// The text with `$(name)` replaced. Unknown names stay: they are saved values.
pub fn insert(text: &str, values: &BTreeMap<String, String>) -> String {
    /// A value may contain names, and so may theirs.
    const PASSES: usize = 3;
    let mut out = text.to_owned();
    for (name, value) in std::iter::repeat_n(values, PASSES).flatten() {
        let place = format!("$({name})");
        if out.contains(&place) {
            out = out.replace(&place, value);
        }
    }
    out
}

pub fn folder() -> PathBuf {
    crate::cargo::root().join("tests/raw-parity")
}

/// All files, ordered by name.
pub fn load() -> Result<Vec<File>> {
    let folder = folder().join("requests");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    paths.into_iter().map(|path| read(&path)).collect()
}

fn read(path: &std::path::Path) -> Result<File> {
    let text = std::fs::read_to_string(path)?;
    let mut file: File = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (_, name) = stem.split_once('-').context("the name of a file is <number>-<name>.yaml")?;
    file.name = name.to_owned();
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_requests_and_each_file_is_well_formed() {
        let mut count = 0;
        for file in load().unwrap() {
            count += file.requests().unwrap().iter().filter(|request| !request.quiet).count();
        }
        assert!(count >= 1500, "{count} requests");
    }

    #[test]
    fn a_family_is_every_combination_of_its_values() {
        let file: File = serde_saphyr::from_str(
            "about: x\nsets: {kind: [{p: a}, {p: b}]}\nrequests:\n- {send: 'GET /$(k.p)/$(n)', each: {k: kind, n: [1, 2]}}",
        )
        .unwrap();
        let paths: Vec<_> = file.requests().unwrap().into_iter().map(|request| request.path).collect();
        assert_eq!(paths, ["/a/1", "/a/2", "/b/1", "/b/2"]);
    }
}
