//! Documents of OpenAPI v3.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::builtin::Definitions;
use super::custom::{self, Version};
use super::names::custom_definition;
use super::operations::{Paths, describe, resource_list};
use super::render;
use crate::registry::Resource;

pub fn document(group: &str, version: &str, resources: &[Arc<Resource>]) -> Value {
    let custom = resources.iter().any(|resource| resource.custom().is_some());
    let mut definitions = Definitions::new(Version::V3);
    let mut paths = Paths::new();
    let mut schemas = Map::new();
    for resource in resources {
        let described = match resource.custom() {
            Some(custom) => {
                schemas.extend(custom::definitions(resource, custom, Version::V3));
                describe(resource, |group, version, kind| {
                    Some(custom_name(resource, &mut definitions, group, version, kind))
                })
            }
            None => describe(resource, |group, version, kind| definitions.add_kind(group, version, kind)),
        };
        paths.extend(described);
    }
    if !custom && let Some(list) = definitions.add_kind("", "v1", "APIResourceList") {
        paths.extend([resource_list(group, version, list)]);
    }
    definitions.add_shared(&paths);
    let paths = render::paths(&paths, Version::V3);
    schemas.extend(definitions.finish());
    let mut components = json!({ "schemas": schemas });
    let info = if custom {
        json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" })
    } else {
        components["securitySchemes"] = bearer_token();
        json!({ "title": "Kubernetes", "version": "1.36" })
    };
    json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": components })
}

/// The definition of a custom resource, of its list, or of the built-in kind of a subresource.
pub fn custom_name(
    resource: &Resource,
    definitions: &mut Definitions,
    group: &str,
    version: &str,
    kind: &str,
) -> String {
    if (group, version) == (&resource.group, &resource.version) {
        return custom_definition(group, version, kind);
    }
    definitions.add_kind(group, version, kind).unwrap_or_else(|| custom_definition(group, version, kind))
}

/// The authentication scheme.
pub fn bearer_token() -> Value {
    json!({
        "BearerToken": {
            "description": "bearer token of a user or service account",
            "in": "header", "name": "authorization", "type": "apiKey",
        }
    })
}
