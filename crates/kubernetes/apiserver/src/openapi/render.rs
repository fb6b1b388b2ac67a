//! Renders operations as OpenAPI.

use serde_json::{Map, Value, json};

use super::custom::Version;
use super::operations::{Operation, PathItem, Paths};

pub fn paths(paths: &Paths, version: Version) -> Map<String, Value> {
    paths.iter().map(|(path, item)| (path.clone(), path_item(item, version))).collect()
}

fn path_item(item: &PathItem, version: Version) -> Value {
    let mut out = Map::new();
    for operation in &item.operations {
        let written = match version {
            Version::V2 => v2(operation),
            Version::V3 => v3(operation),
        };
        out.insert(operation.method.into(), written);
    }
    let parameters: Vec<Value> = item
        .parameters
        .iter()
        .map(|parameter| match version {
            Version::V2 => parameter.v2(),
            Version::V3 => parameter.v3(),
        })
        .collect();
    if !parameters.is_empty() {
        out.insert("parameters".into(), parameters.into());
    }
    out.into()
}

/// What both versions have in common.
fn common(operation: &Operation) -> Value {
    let mut out = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
    });
    if let Some((group, version, kind)) = &operation.kind {
        out["x-kubernetes-action"] = operation.action.into();
        out["x-kubernetes-group-version-kind"] = json!({ "group": group, "version": version, "kind": kind });
    }
    out
}

fn v3(operation: &Operation) -> Value {
    let content = |types: &[&str], definition: &str| {
        let schema = json!({ "schema": { "$ref": Version::V3.reference(definition) } });
        types.iter().map(|media_type| ((*media_type).to_owned(), schema.clone())).collect::<Map<_, _>>()
    };
    let mut out = common(operation);
    let parameters: Vec<Value> = operation.parameters.iter().map(|p| p.v3()).collect();
    if !parameters.is_empty() {
        out["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        out["requestBody"] = json!({ "content": content(operation.consumes, &body.definition) });
        if body.required {
            out["requestBody"]["required"] = true.into();
        }
    }
    let mut responses = Map::new();
    for (code, text, definition) in &operation.responses {
        let response = json!({ "description": text, "content": content(operation.produces, definition) });
        responses.insert(code.to_string(), response);
    }
    responses.insert("401".into(), json!({ "description": "Unauthorized" }));
    out["responses"] = responses.into();
    out
}

fn v2(operation: &Operation) -> Value {
    let mut out = common(operation);
    let mut parameters: Vec<Value> = operation.parameters.iter().map(|p| p.v2()).collect();
    if let Some(body) = &operation.body {
        let schema = json!({ "$ref": Version::V2.reference(&body.definition) });
        let mut parameter = json!({ "name": "body", "in": "body", "schema": schema });
        if body.required {
            parameter["required"] = true.into();
        }
        parameters.insert(0, parameter);
    }
    if !parameters.is_empty() {
        out["parameters"] = parameters.into();
    }
    let mut responses = Map::new();
    for (code, text, definition) in &operation.responses {
        let schema = json!({ "$ref": Version::V2.reference(definition) });
        responses.insert(code.to_string(), json!({ "description": text, "schema": schema }));
    }
    responses.insert("401".into(), json!({ "description": "Unauthorized" }));
    out["responses"] = responses.into();
    out["consumes"] = json!(operation.consumes);
    out["produces"] = json!(operation.produces);
    out["schemes"] = json!(["https"]);
    out
}
