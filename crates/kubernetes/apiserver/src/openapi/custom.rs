//! Published schemas of custom resources, from the stored CustomResourceDefinition.
//!
//! Version 3 has everything that a structural schema expresses. Version 2 leaves out what its clients cannot handle:
//! kubectl rejects objects if an untyped or unknown-preserving node still lists properties.

use serde_json::{Map, Value, json};

use super::names::custom_definition;
use crate::registry::{CustomResource, Resource};

/// The OpenAPI version of a published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V2,
    V3,
}

impl Version {
    /// A reference to a shared definition.
    pub fn reference(self, definition: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{definition}"),
            Self::V3 => format!("#/components/schemas/{definition}"),
        }
    }

    /// A reference with a description. In version 3 a `$ref` has no siblings, so it is wrapped in an `allOf`.
    fn described(self, definition: &str, description: &str) -> Value {
        let reference = self.reference(definition);
        match self {
            Self::V2 => json!({ "description": description, "$ref": reference }),
            Self::V3 => json!({ "description": description, "allOf": [{ "$ref": reference }] }),
        }
    }
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

// Upstream's own tests look for the beginnings of these sentences in `kubectl explain`.
pub const API_VERSION: &str = "APIVersion defines the group and version whose schema this object has.";
pub const KIND: &str = "Kind is the name of this object's type, in CamelCase.";
pub const METADATA: &str = "Standard object's metadata: names, labels, owners, times.";
pub const LIST_METADATA: &str = "Standard list metadata: resource version and where the list continues.";

/// Definitions of a custom resource and of its list, by name.
pub fn definitions(resource: &Resource, custom: &CustomResource, version: Version) -> [(String, Value); 2] {
    let selectable = selectable_fields(resource, custom);
    let mut object = object(resource, custom, version);
    let mut list = list(resource, version);
    let named = |kind: &str| json!([{ "group": resource.group, "version": resource.version, "kind": kind }]);
    object.insert("x-kubernetes-group-version-kind".into(), named(&resource.kind));
    list["x-kubernetes-group-version-kind"] = named(&resource.list_kind);
    if let Some(fields) = selectable {
        object.insert("x-kubernetes-selectable-fields".into(), fields.clone());
        list["x-kubernetes-selectable-fields"] = fields;
    }
    let name = |kind: &str| custom_definition(&resource.group, &resource.version, kind);
    [(name(&resource.kind), object.into()), (name(&resource.list_kind), list)]
}

fn object(resource: &Resource, custom: &CustomResource, version: Version) -> Map<String, Value> {
    let Some(schema) = declared(resource, custom) else { return bare() };
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true || custom.preserve_unknown;
    if version == Version::V2 && preserves {
        return bare();
    }
    let mut out = published(schema, version);
    extend(&mut out, "properties", head(API_VERSION, KIND, version.described(OBJECT_META, METADATA)));
    out
}

fn list(resource: &Resource, version: Version) -> Value {
    let item = custom_definition(&resource.group, &resource.version, &resource.kind);
    let mut properties = head(API_VERSION, KIND, version.described(LIST_META, LIST_METADATA));
    properties.insert(
        "items".into(),
        json!({
            "description": format!("List of {}.", resource.plural),
            "type": "array",
            "items": { "$ref": version.reference(&item) },
        }),
    );
    json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": properties,
    })
}

/// The schema of an object without a known schema.
fn bare() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into())])
}

fn declared<'a>(resource: &Resource, custom: &'a CustomResource) -> Option<&'a Value> {
    let schema = version_of(resource, custom)?.pointer("/schema/openAPIV3Schema")?;
    schema.is_object().then_some(schema)
}

fn version_of<'a>(resource: &Resource, custom: &'a CustomResource) -> Option<&'a Value> {
    custom.spec["versions"].as_array()?.iter().find(|version| version["name"] == resource.version.as_str())
}

fn selectable_fields(resource: &Resource, custom: &CustomResource) -> Option<Value> {
    let fields = version_of(resource, custom)?["selectableFields"].as_array()?;
    let paths: Vec<Value> = fields
        .iter()
        .filter_map(|field| field["jsonPath"].as_str())
        .map(|path| json!({ "fieldPath": path.strip_prefix('.').unwrap_or(path) }))
        .collect();
    (!paths.is_empty()).then(|| paths.into())
}

/// Keywords copied to both versions.
const KEPT: &[&str] = &[
    "description",
    "title",
    "type",
    "format",
    "maximum",
    "minimum",
    "multipleOf",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "enum",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Keywords copied when true.
const FLAGS: &[&str] = &[
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

/// The published form of a structural node.
fn published(schema: &Value, version: Version) -> Map<String, Value> {
    let mut out = scalars(schema);
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let nullable = schema["nullable"] == true;
    let v2 = version == Version::V2;
    // Version 2 has no null: nullable nodes are untyped, and so are nodes that preserve unknown fields.
    let opaque = v2 && (preserves || nullable);

    if !opaque {
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            out.insert("items".into(), published(items, version).into());
        }
        if let Some(properties) = schema["properties"].as_object() {
            let shown = properties.iter().map(|(key, value)| (key.clone(), published(value, version).into()));
            let shown: Map<String, Value> = shown.collect();
            if !shown.is_empty() {
                out.insert("properties".into(), shown.into());
            }
        }
    }
    match &schema["additionalProperties"] {
        Value::Bool(any) => drop(out.insert("additionalProperties".into(), (*any).into())),
        value @ Value::Object(_) => {
            out.insert("additionalProperties".into(), published(value, version).into());
        }
        _ => {}
    }
    match version {
        Version::V3 => add_v3(schema, &mut out),
        Version::V2 => reduce_v2(schema, &mut out, nullable, preserves),
    }
    if schema["x-kubernetes-embedded-resource"] == true && !(v2 && preserves) {
        embed(&mut out, version);
    }
    out
}

/// The keywords of a node without nested schemas.
fn scalars(schema: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    for key in KEPT {
        let empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        if let Some(value) = schema.get(*key).filter(|value| !empty(value)) {
            out.insert((*key).into(), value.clone());
        }
    }
    for key in FLAGS {
        if schema[*key] == true {
            out.insert((*key).into(), true.into());
        }
    }
    out
}

/// Keywords of version 3 only: defaults, null, combinations.
fn add_v3(schema: &Value, out: &mut Map<String, Value>) {
    if let Some(default) = schema.get("default") {
        out.insert("default".into(), default.clone());
    }
    if schema["nullable"] == true {
        out.insert("nullable".into(), true.into());
    }
    combinations(schema, out);
    if schema["x-kubernetes-int-or-string"] == true {
        unfold_int_or_string(out);
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not` of value validations.
fn combinations(schema: &Value, out: &mut Map<String, Value>) {
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(list) = schema[key].as_array().filter(|list| !list.is_empty()) {
            out.insert(key.into(), list.iter().map(validation).collect());
        }
    }
    if schema["not"].is_object() {
        out.insert("not".into(), validation(&schema["not"]));
    }
}

/// A value validation: like a node, without additions.
fn validation(schema: &Value) -> Value {
    let mut out = scalars(schema);
    if schema["items"].is_object() {
        out.insert("items".into(), validation(&schema["items"]));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let shown: Map<String, Value> =
            properties.iter().map(|(key, value)| (key.clone(), validation(value))).collect();
        out.insert("properties".into(), shown.into());
    }
    if schema["additionalProperties"].is_object() {
        out.insert("additionalProperties".into(), validation(&schema["additionalProperties"]));
    }
    combinations(schema, &mut out);
    out.into()
}

/// Expresses int-or-string in plain OpenAPI, unless the author did.
fn unfold_int_or_string(out: &mut Map<String, Value>) {
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let says_so = out.get("anyOf") == Some(&either)
        || out.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf")) == Some(&either);
    if says_so {
        return;
    }
    if !out.contains_key("anyOf") {
        out.insert("anyOf".into(), either);
        return;
    }
    let mut all = vec![json!({ "anyOf": either })];
    if let Some(Value::Array(given)) = out.remove("allOf") {
        all.extend(given);
    }
    out.insert("allOf".into(), all.into());
}

/// Adapts a node for clients of version 2.
fn reduce_v2(schema: &Value, out: &mut Map<String, Value>, nullable: bool, preserves: bool) {
    let array_without_items = out.get("type").is_some_and(|t| t == "array") && !out.contains_key("items");
    let preserving_object = preserves && out.get("type").is_some_and(|t| t == "object");
    if nullable || array_without_items || preserving_object {
        out.remove("type");
    }
    // In version 2 a nullable field is optional.
    let is_nullable = |value: &Value| value["nullable"] == true;
    if is_nullable(&schema["additionalProperties"]) {
        out.remove("required");
    }
    if out.contains_key("properties")
        && let Some(Value::Array(required)) = out.remove("required")
    {
        let kept: Vec<Value> = required
            .into_iter()
            .filter(|name| !name.as_str().is_some_and(|name| is_nullable(&schema["properties"][name])))
            .collect();
        if !kept.is_empty() {
            out.insert("required".into(), kept.into());
        }
    }
}

/// An embedded resource has a type and metadata.
fn embed(out: &mut Map<String, Value>, version: Version) {
    let properties = head(
        "apiVersion is the group and version whose schema the embedded object has.",
        "kind is the name of the embedded object's type, in CamelCase.",
        version.described(OBJECT_META, METADATA),
    );
    extend(out, "properties", properties);
    let mut required = match out.remove("required") {
        Some(Value::Array(required)) => required,
        _ => Vec::new(),
    };
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|given| given == name) {
            required.push(name.into());
        }
    }
    out.insert("required".into(), required.into());
}

/// The properties of every object.
fn head(api_version: &str, kind: &str, metadata: Value) -> Map<String, Value> {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    Map::from_iter([
        ("apiVersion".to_owned(), text(api_version)),
        ("kind".to_owned(), text(kind)),
        ("metadata".to_owned(), metadata),
    ])
}

/// Adds entries to the object under a key.
fn extend(out: &mut Map<String, Value>, key: &str, entries: Map<String, Value>) {
    match out.get_mut(key) {
        Some(Value::Object(there)) => there.extend(entries),
        _ => drop(out.insert(key.into(), entries.into())),
    }
}
