//! Definitions of built-in types, from the table of Go types.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use capstan_builtin::table::{Expr, Field, Shape, Special, Type, TypeId, table};
use serde_json::{Map, Value, json};

use super::custom::Version;
use super::describe;
use super::operations::Paths;

/// Group, version and kind of the types that are kinds. Upstream lists those of `meta/v1` for every group; here only
/// for the core group.
static KINDS: LazyLock<HashMap<TypeId, (&str, &str, &str)>> = LazyLock::new(|| {
    let own = capstan_builtin::kinds().iter().flat_map(|kind| {
        let subresources = kind.subresources.iter().map(|sub| (sub.group, sub.version, sub.kind));
        [(kind.group, kind.version, kind.kind), (kind.group, kind.version, kind.list_kind.as_str())]
            .into_iter()
            .chain(subresources)
    });
    let meta = ["DeleteOptions", "Status", "WatchEvent"].map(|kind| ("", "v1", kind));
    own.chain(meta).filter_map(|of| Some((table().kind(of.0, of.1, of.2)?, of))).collect()
});

/// A set of definitions that refer to each other.
#[derive(Debug)]
pub struct Definitions {
    version: Version,
    done: BTreeMap<String, Value>,
}

impl Definitions {
    pub fn new(version: Version) -> Self {
        Self { version, done: BTreeMap::new() }
    }

    /// Adds the definition of a kind and everything it refers to. Returns its name, if there is such a kind.
    pub fn add_kind(&mut self, group: &str, version: &str, kind: &str) -> Option<String> {
        table().kind(group, version, kind).map(|id| self.add(id))
    }

    /// Adds the definitions that operations and custom resources refer to.
    pub fn add_shared(&mut self, paths: &Paths) {
        for name in mentioned(paths) {
            match name.rsplit('.').next() {
                // The type of all patch formats.
                Some("Patch") => {
                    let patch = json!({ "type": "object", "description": "a change in a patch format" });
                    self.done.insert(name.to_owned(), patch);
                }
                Some(kind) => drop(self.add_kind("", "v1", kind)),
                None => {}
            }
        }
        for name in ["ObjectMeta", "ListMeta"] {
            let used = paths.values().flat_map(|item| &item.operations).any(|op| op.action == "list");
            if let Some(id) = table().find(&format!("meta/v1.{name}")).filter(|_| used) {
                self.add(id);
            }
        }
    }

    /// The definitions by name.
    pub fn finish(self) -> BTreeMap<String, Value> {
        self.done
    }

    fn add(&mut self, id: TypeId) -> String {
        let ty = table().get(id);
        let name = ty.openapi_name();
        if !self.done.contains_key(&name) {
            // Inserted before its fields are visited: types may be recursive.
            self.done.insert(name.clone(), Value::Null);
            let definition = match &ty.shape {
                Shape::Special(special) => self.special(*special),
                _ => self.structure(id, ty),
            };
            let mut definition = described(definition, describe::ty(ty.name));
            if let Some((group, version, kind)) = KINDS.get(&id) {
                let kinds = json!([{ "group": group, "version": version, "kind": kind }]);
                definition.insert("x-kubernetes-group-version-kind".into(), kinds);
            }
            self.done.insert(name.clone(), definition.into());
        }
        name
    }

    fn structure(&mut self, id: TypeId, ty: &Type) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let object = ["metadata", "gracePeriodSeconds"].iter().any(|key| table().field(id, key).is_some());
        for field in table().flat_fields(id) {
            if field.required {
                required.push(Value::from(field.json));
            }
            properties.insert(field.json.into(), self.field(ty, object, field).into());
        }
        let mut out = Map::new();
        out.insert("type".into(), "object".into());
        if !properties.is_empty() {
            out.insert("properties".into(), properties.into());
        }
        if !required.is_empty() {
            out.insert("required".into(), required.into());
        }
        if let Some(map_type) = ty.map_type {
            out.insert("x-kubernetes-map-type".into(), map_type.into());
        }
        if let Some(unions) = &ty.unions {
            out.insert("x-kubernetes-unions".into(), unions.clone());
        }
        out
    }

    fn field(&mut self, of: &Type, object: bool, field: &Field) -> Map<String, Value> {
        let mut out = self.expr(&field.expr);
        if let Some(items) = out.get_mut("items").filter(|_| !field.item_enumeration.is_empty()) {
            items["enum"] = field.item_enumeration.clone().into();
        }
        if let Some(format) = field.format {
            out.insert("format".into(), format.into());
        }
        if !field.enumeration.is_empty() {
            out.insert("enum".into(), field.enumeration.clone().into());
        }
        if !field.map_keys.is_empty() {
            out.insert("x-kubernetes-list-map-keys".into(), json!(field.map_keys));
        }
        let texts = [
            ("x-kubernetes-list-type", field.list_type),
            ("x-kubernetes-map-type", field.map_type),
            ("x-kubernetes-patch-strategy", field.patch_strategy),
            ("x-kubernetes-patch-merge-key", field.patch_merge_key),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                out.insert(key.into(), text.into());
            }
        }
        if let (Version::V3, Some(default)) = (self.version, &field.default) {
            out.insert("default".into(), default.clone());
        }
        let mut out = described(out, describe::field(of.name, object, field.json));
        // In version 3 a `$ref` has no siblings.
        if self.version == Version::V3
            && out.len() > 1
            && let Some(reference) = out.remove("$ref")
        {
            out.insert("allOf".into(), json!([{ "$ref": reference }]));
        }
        out
    }

    fn expr(&mut self, expr: &Expr) -> Map<String, Value> {
        let plain = |kind: &str, format: Option<&str>| {
            let mut out = Map::new();
            out.insert("type".into(), kind.into());
            if let Some(format) = format {
                out.insert("format".into(), format.into());
            }
            out
        };
        match table().resolve(expr) {
            Expr::Bool => plain("boolean", None),
            Expr::String => plain("string", None),
            Expr::Int32 => plain("integer", Some("int32")),
            Expr::Int64 => plain("integer", Some("int64")),
            Expr::Float64 => plain("number", Some("double")),
            Expr::Bytes => plain("string", Some("byte")),
            Expr::Any => plain("object", None),
            Expr::Pointer(inner) => self.expr(inner),
            Expr::List(item) => {
                let mut out = plain("array", None);
                out.insert("items".into(), self.element(item).into());
                out
            }
            Expr::Map(_, value) => {
                let mut out = plain("object", None);
                out.insert("additionalProperties".into(), self.element(value).into());
                out
            }
            Expr::Named(id) => {
                let name = self.add(*id);
                Map::from_iter([("$ref".to_owned(), self.version.reference(&name).into())])
            }
        }
    }

    /// The schema of list or map entries. Version 3 has Go's zero value as the default.
    fn element(&mut self, expr: &Expr) -> Map<String, Value> {
        let mut out = self.expr(expr);
        if self.version == Version::V2 {
            return out;
        }
        let zero = match table().resolve(expr) {
            Expr::String => json!(""),
            Expr::Bool => json!(false),
            Expr::Int32 | Expr::Int64 | Expr::Float64 => json!(0),
            Expr::Named(id) if matches!(table().get(*id).shape, Shape::Struct) => json!({}),
            _ => return out,
        };
        out.insert("default".into(), zero);
        if let Some(reference) = out.remove("$ref") {
            out.insert("allOf".into(), json!([{ "$ref": reference }]));
        }
        out
    }

    fn special(&self, special: Special) -> Map<String, Value> {
        let v3 = self.version == Version::V3;
        let value = match special {
            Special::Time | Special::MicroTime => json!({ "type": "string", "format": "date-time" }),
            Special::Quantity if v3 => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            Special::Quantity => json!({ "type": "string" }),
            Special::IntOrString if v3 => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            Special::IntOrString => json!({ "type": "string", "format": "int-or-string" }),
            Special::RawExtension | Special::Unknown | Special::FieldsV1 => json!({ "type": "object" }),
            Special::Json | Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray => {
                json!({})
            }
        };
        value.as_object().cloned().unwrap_or_default()
    }
}

/// Types of `meta/v1` in requests and responses of operations.
fn mentioned(paths: &Paths) -> BTreeSet<&str> {
    let operations = || paths.values().flat_map(|item| &item.operations);
    let bodies = operations().filter_map(|operation| operation.body.as_ref()).map(|body| &body.definition);
    let answers = operations().flat_map(|operation| &operation.responses).map(|(_, _, answer)| answer);
    let all = bodies.chain(answers).map(String::as_str);
    all.filter(|name| name.starts_with("io.k8s.apimachinery.")).collect()
}

fn described(mut out: Map<String, Value>, description: Option<&'static str>) -> Map<String, Value> {
    if let Some(description) = description {
        out.insert("description".into(), description.into());
    }
    out
}
