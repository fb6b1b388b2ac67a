//! The document of OpenAPI v2, assembled from parts that are rendered once.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::builtin::Definitions;
use super::custom::{self, Version};
use super::operations::{Paths, describe, resource_list};
use super::{render, v3};
use crate::registry::{CustomResource, Resource};

/// Rendered paths and definitions, without the enclosing braces.
#[derive(Debug)]
pub struct Part {
    paths: String,
    definitions: String,
}

/// The part of all built-in kinds of some resources. Shared in a process for every set of kinds.
pub fn built_in(resources: &[&Arc<Resource>]) -> Arc<Part> {
    static PARTS: OnceLock<Mutex<BTreeMap<Vec<String>, Arc<Part>>>> = OnceLock::new();
    let kinds: Vec<&Resource> =
        resources.iter().map(|resource| resource.as_ref()).filter(|r| r.custom().is_none()).collect();
    let names = kinds.iter().map(|kind| format!("{}/{}", kind.api_version(), kind.plural)).collect();
    let mut parts = PARTS.get_or_init(Mutex::default).lock();
    parts.entry(names).or_insert_with(|| Arc::new(render_built_in(&kinds))).clone()
}

fn render_built_in(kinds: &[&Resource]) -> Part {
    let mut definitions = Definitions::new(Version::V2);
    // The only built-in kind that custom resources have as a subresource.
    definitions.add_kind("autoscaling", "v1", "Scale");
    let mut paths = Paths::new();
    for kind in kinds {
        let described = describe(kind, |group, version, kind| definitions.add_kind(group, version, kind));
        paths.extend(described);
        if let Some(list) = definitions.add_kind("", "v1", "APIResourceList") {
            paths.extend([resource_list(&kind.group, &kind.version, list)]);
        }
    }
    definitions.add_shared(&paths);
    Part { paths: entries(render::paths(&paths, Version::V2)), definitions: entries(definitions.finish()) }
}

/// The part of one version of a custom resource.
pub fn custom(resource: &Resource, custom: &CustomResource) -> Part {
    let mut shared = Definitions::new(Version::V2);
    let described = describe(resource, |group, version, kind| {
        Some(v3::custom_name(resource, &mut shared, group, version, kind))
    });
    let paths = render::paths(&described, Version::V2);
    let definitions = custom::definitions(resource, custom, Version::V2);
    Part { paths: entries(paths), definitions: entries(definitions) }
}

/// The whole document.
pub fn assemble(parts: &[Arc<Part>]) -> Vec<u8> {
    let joined = |part: fn(&Part) -> &str| {
        let parts: Vec<&str> = parts.iter().map(|p| part(p)).filter(|text| !text.is_empty()).collect();
        parts.join(",")
    };
    let info = json!({ "title": "Kubernetes", "version": "1.36" });
    format!(
        r#"{{"swagger":"2.0","info":{info},"paths":{{{}}},"definitions":{{{}}},"securityDefinitions":{},"security":[{{"BearerToken":[]}}]}}"#,
        joined(|part| &part.paths),
        joined(|part| &part.definitions),
        v3::bearer_token(),
    )
    .into()
}

fn entries(map: impl IntoIterator<Item = (String, Value)>) -> String {
    let entries: Vec<String> =
        map.into_iter().map(|(key, value)| format!("{}:{value}", Value::String(key))).collect();
    entries.join(",")
}
