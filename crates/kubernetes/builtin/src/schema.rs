//! Schemas of built-in kinds, from the table. Built on first use, shared by the whole process.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use capstan_schema::schema::{Additional, Checks, ListType, MapType, Schema, TypeName};
use serde_json::json;

use crate::table::{Expr, Field, Shape, Special, Table, TypeId, table};

/// The schema of a built-in kind.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    table().kind(group, version, kind).map(schema_of)
}

/// The schema of a type of the table.
pub fn schema_of(id: TypeId) -> Arc<Schema> {
    Builder { table: table(), open: Vec::new() }.named(id)
}

/// One slot per type. Recursive structs (only `JSONSchemaProps`) are opaque one level down: lists of CRD versions are
/// atomic, so neither patches nor apply look further.
static CACHE: LazyLock<Vec<OnceLock<Arc<Schema>>>> =
    LazyLock::new(|| table().types().map(|_| OnceLock::new()).collect());

struct Builder<'a> {
    table: &'a Table,
    open: Vec<TypeId>,
}

impl Builder<'_> {
    fn named(&mut self, id: TypeId) -> Arc<Schema> {
        if let Some(done) = CACHE.get(id.index()).and_then(OnceLock::get) {
            return Arc::clone(done);
        }
        if self.open.contains(&id) {
            return Arc::new(opaque(Some(TypeName::Object)));
        }
        self.open.push(id);
        let ty = self.table.get(id);
        let mut built = match &ty.shape {
            Shape::Struct => self.structure(id),
            Shape::Alias { under, .. } => Arc::unwrap_or_clone(self.expr(under)),
            Shape::Special(special) => of_special(*special),
        };
        built.map_type = ty.map_type.and_then(MapType::from_name).or(built.map_type);
        self.open.pop();
        let built = Arc::new(built);
        match CACHE.get(id.index()) {
            Some(slot) => Arc::clone(slot.get_or_init(|| built)),
            None => built,
        }
    }

    fn structure(&mut self, id: TypeId) -> Schema {
        let mut properties = BTreeMap::new();
        let mut required = Vec::new();
        for field in self.table.flat_fields(id) {
            if field.required {
                required.push(field.json.to_owned());
            }
            properties.insert(field.json.to_owned(), self.field(field));
        }
        required.sort_unstable();
        let checks = (!required.is_empty()).then(|| Box::new(Checks { required, ..Checks::default() }));
        Schema { properties, checks, ..Schema::of(TypeName::Object) }
    }

    fn field(&mut self, field: &Field) -> Arc<Schema> {
        let plain = self.expr(&field.expr);
        // An empty object as default only means that Go writes the struct; the schema stays shared.
        let default = field.default.clone().filter(|d| *d != json!({}));
        let own = default.is_some()
            || field.list_type.is_some()
            || field.map_type.is_some()
            || field.patch_strategy.is_some()
            || field.patch_merge_key.is_some()
            || !field.enumeration.is_empty();
        if !own {
            return plain;
        }
        let mut schema = Arc::unwrap_or_clone(plain);
        schema.default = default;
        schema.list_type = field.list_type.and_then(ListType::from_name);
        schema.list_map_keys = field.map_keys.iter().map(|k| (*k).to_owned()).collect();
        schema.map_type = field.map_type.and_then(MapType::from_name).or(schema.map_type);
        schema.patch_strategy = field.patch_strategy.map(str::to_owned);
        schema.patch_merge_key = field.patch_merge_key.map(str::to_owned);
        if !field.enumeration.is_empty() {
            schema.checks.get_or_insert_default().enumeration = field.enumeration.clone();
        }
        Arc::new(schema)
    }

    fn expr(&mut self, expr: &Expr) -> Arc<Schema> {
        match expr {
            Expr::Named(id) => self.named(*id),
            Expr::Pointer(inner) => self.expr(inner),
            Expr::List(item) => {
                Arc::new(Schema { items: Some(self.expr(item)), ..Schema::of(TypeName::Array) })
            }
            Expr::Map(_, value) => Arc::new(Schema {
                additional: Additional::Schema(self.expr(value)),
                ..Schema::of(TypeName::Object)
            }),
            Expr::Bool => Arc::new(Schema::of(TypeName::Boolean)),
            Expr::String => Arc::new(Schema::of(TypeName::String)),
            Expr::Int32 => Arc::new(formatted(TypeName::Integer, "int32")),
            Expr::Int64 => Arc::new(formatted(TypeName::Integer, "int64")),
            Expr::Float64 => Arc::new(formatted(TypeName::Number, "double")),
            Expr::Bytes => Arc::new(formatted(TypeName::String, "byte")),
            Expr::Any => Arc::new(opaque(None)),
        }
    }
}

fn formatted(kind: TypeName, format: &str) -> Schema {
    let checks = Checks { format: Some(format.to_owned()), ..Checks::default() };
    Schema { checks: Some(Box::new(checks)), ..Schema::of(kind) }
}

fn opaque(kind: Option<TypeName>) -> Schema {
    Schema { kind, preserve_unknown: true, ..Schema::default() }
}

fn of_special(special: Special) -> Schema {
    match special {
        Special::Time | Special::MicroTime => formatted(TypeName::String, "date-time"),
        // A scalar that may be a number or a string.
        Special::Quantity | Special::IntOrString => Schema { int_or_string: true, ..Schema::default() },
        // Merged and owned as one value.
        Special::RawExtension | Special::Unknown | Special::FieldsV1 => {
            Schema { map_type: Some(MapType::Atomic), ..opaque(Some(TypeName::Object)) }
        }
        Special::Json | Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray => {
            Schema { map_type: Some(MapType::Atomic), ..opaque(None) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kinds;

    #[test]
    fn every_kind_has_a_schema_with_metadata() {
        for kind in kinds() {
            let schema = schema(kind.group, kind.version, kind.kind).unwrap();
            assert_eq!(schema.kind, Some(TypeName::Object), "{}", kind.kind);
            assert!(schema.properties.contains_key("apiVersion"), "{}", kind.kind);
            assert!(schema.properties.contains_key("metadata"), "{}", kind.kind);
        }
    }

    #[test]
    fn sub_schemas_are_shared() {
        let pod = schema("", "v1", "Pod").unwrap();
        let secret = schema("", "v1", "Secret").unwrap();
        assert!(Arc::ptr_eq(&pod.properties["metadata"], &secret.properties["metadata"]));
        assert!(Arc::ptr_eq(&pod, &schema("", "v1", "Pod").unwrap()));
    }

    #[test]
    fn a_pods_containers_merge_by_name() {
        let pod = schema("", "v1", "Pod").unwrap();
        let containers = &pod.properties["spec"].properties["containers"];
        assert_eq!(containers.patch_strategy.as_deref(), Some("merge"));
        assert_eq!(containers.patch_merge_key.as_deref(), Some("name"));
        assert_eq!(containers.list_type, Some(ListType::Map));
        let ports = &containers.items.as_ref().unwrap().properties["ports"];
        assert_eq!(ports.list_map_keys, ["containerPort", "protocol"]);
        assert_eq!(ports.items.as_ref().unwrap().properties["protocol"].default, Some(json!("TCP")));
    }

    #[test]
    fn the_recursion_of_crd_schemas_ends() {
        let crd = schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        let version = crd.properties["spec"].properties["versions"].items.as_ref().unwrap();
        let props = &version.properties["schema"].properties["openAPIV3Schema"];
        let inner = props.properties["properties"].additional_schema().unwrap();
        assert!(inner.preserve_unknown);
        assert!(props.properties["not"].preserve_unknown);
    }
}
