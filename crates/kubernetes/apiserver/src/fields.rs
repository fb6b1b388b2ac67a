//! Selectable fields of each kind.

use std::collections::BTreeMap;

use capstan_schema::jsonpath::Path;
use capstan_store::Entry;
use serde_json::Value;

use crate::digest::Digest;
use crate::registry::Resource;

#[derive(Debug, Clone)]
pub(crate) struct Selectable {
    /// Field name in selectors, and its path in the object.
    paths: Vec<(String, Path)>,
    namespaced: bool,
}

/// Fields of built-in kinds in addition to `metadata.name` and `metadata.namespace`.
fn built_in(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "secrets") => &["type"],
        ("" | "events.k8s.io", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase", "name"],
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        ("resource.k8s.io", "resourceslices") => &["spec.nodeName", "spec.driver"],
        _ => &[],
    }
}

impl Selectable {
    pub fn of(resource: &Resource) -> Self {
        let mut paths: Vec<(String, Path)> = Vec::new();
        let mut add = |field: &str, path: &str| {
            if let Ok(path) = Path::parse(path) {
                paths.push((field.to_owned(), path));
            }
        };
        if let Some(custom) = resource.custom() {
            let version = custom.spec["versions"]
                .as_array()
                .and_then(|versions| versions.iter().find(|v| v["name"] == resource.version.as_str()));
            let declared = version.and_then(|v| v["selectableFields"].as_array());
            for field in declared.into_iter().flatten() {
                if let Some(path) = field["jsonPath"].as_str() {
                    add(path.trim_start_matches('.'), path);
                }
            }
        } else {
            for field in built_in(&resource.group, &resource.plural) {
                // Paths are those of the stored form: events of both groups in the older one.
                let path = match *field {
                    "source" => "source.component",
                    "status.successful" => "status.succeeded",
                    "name" => "metadata.name",
                    field => field,
                };
                let field = match (resource.group.as_str(), *field) {
                    ("events.k8s.io", "reportingComponent") => "reportingController".to_owned(),
                    ("events.k8s.io", field) => field.replacen("involvedObject", "regarding", 1),
                    (_, field) => field.to_owned(),
                };
                add(&field, &format!(".{path}"));
            }
        }
        Self { paths, namespaced: resource.namespaced }
    }

    /// Whether the field is selectable.
    pub fn has(&self, field: &str) -> bool {
        field == "metadata.name"
            || (field == "metadata.namespace" && self.namespaced)
            || self.paths.iter().any(|(name, _)| name == field)
    }

    /// The error for a field that is not selectable.
    pub fn unsupported(&self, field: &str, resource: &Resource) -> String {
        if resource.custom().is_some() {
            format!("field label not supported: {field}")
        } else if self.paths.is_empty() {
            format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        } else {
            format!("field label not supported: {field}")
        }
    }

    /// Values of the named fields of an entry. As upstream, absent ones are empty.
    pub fn read<'a>(
        &self,
        entry: &Entry<Digest>,
        fields: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let mut parsed: Option<Value> = None;
        let (namespace, name) = match entry.key.split_once('/') {
            Some((namespace, name)) => (namespace, name),
            None => ("", &*entry.key),
        };
        for field in fields {
            let value = match field {
                "metadata.name" => name.to_owned(),
                "metadata.namespace" => namespace.to_owned(),
                field => {
                    let object = parsed
                        .get_or_insert_with(|| serde_json::from_slice(&entry.value).unwrap_or_default());
                    let path = self.paths.iter().find(|(name, _)| name == field).map(|(_, path)| path);
                    let mut found = path.and_then(|path| path.find(object).into_iter().next().map(text));
                    if field == "source" && found.as_deref().unwrap_or_default().is_empty() {
                        // Newer reporters only set this field.
                        found = object.get("reportingComponent").map(text);
                    }
                    found.unwrap_or_else(|| default_of(field).to_owned())
                }
            };
            values.insert(field.to_owned(), value);
        }
        values
    }
}

/// The value of an absent field of a built-in kind.
fn default_of(field: &str) -> &'static str {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" | "status.successful" => "0",
        _ => "",
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
