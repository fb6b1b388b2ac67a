//! The documents of a configuration file.

use serde_json::Value;

/// A document with its kind.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) value: Value,
}

impl Document {
    /// The kind as Go programs print it.
    pub(super) fn described(&self) -> String {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        format!("schema.GroupVersionKind{{Group:{group:?}, Version:{version:?}, Kind:{:?}}}", self.kind)
    }
}

/// Splits YAML into documents. Errors contain the line, and no content.
pub(super) fn split(text: &str) -> Result<Vec<Document>, String> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line());
        format!("error converting YAML to JSON: yaml: line {line}: did not find expected node content")
    })?;
    let mut documents: Vec<Document> = Vec::new();
    for value in values {
        if value.is_null() {
            continue;
        }
        let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(format!(
                "invalid configuration for GroupVersionKind {api_version}, Kind={kind}: kind and apiVersion is mandatory \
                 information that must be specified"
            ));
        }
        if documents.iter().any(|held| held.kind == kind) {
            return Err(format!("invalid configuration: kind {kind:?} is specified twice in YAML file"));
        }
        documents.push(Document { api_version, kind, value });
    }
    Ok(documents)
}
