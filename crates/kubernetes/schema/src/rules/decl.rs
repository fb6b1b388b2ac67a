//! Converts a schema to a declared type of CEL.

use capstan_cel::{DeclType, Field, ListKind};
use serde_json::Value;

use crate::Schema;
use crate::apply::metadata_schema;
use crate::schema::{Additional, ListType, TypeName};

/// The declared type of a schema. `resource` makes identity and name accessible.
pub fn of_schema(schema: &Schema, resource: bool) -> DeclType {
    let declared = typed(schema, resource);
    if schema.nullable { declared.nullable() } else { declared }
}

/// The declared type of whole objects of a schema, with everything that `metadata` has. Objects of any shape are
/// dynamic.
pub fn of_object(schema: &Schema) -> DeclType {
    if schema.properties.is_empty() && (schema.preserve_unknown || schema.kind.is_none()) {
        return DeclType::dynamic();
    }
    let own = schema.properties.iter().filter(|(name, _)| !OBJECT.contains(&name.as_str()));
    let own = own.map(|(name, property)| Field::new(name, of_schema(property, property.embedded_resource)));
    let common = [
        Field::new("apiVersion", DeclType::string()),
        Field::new("kind", DeclType::string()),
        Field::new("metadata", of_schema(metadata_schema(), false)),
    ];
    DeclType::object(own.chain(common))
}

/// What every object has.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn typed(schema: &Schema, resource: bool) -> DeclType {
    let checks = schema.checks.as_deref();
    let max_length = checks.and_then(|checks| checks.max_length);
    let with_max_length =
        |decl: DeclType| max_length.map_or_else(|| decl.clone(), |max| decl.clone().with_max_length(max));
    if schema.int_or_string {
        return with_max_length(DeclType::int_or_string());
    }
    match schema.kind {
        None => DeclType::preserved(),
        Some(TypeName::Boolean) => DeclType::boolean(),
        Some(TypeName::Integer) => DeclType::int(),
        Some(TypeName::Number) => DeclType::double(),
        Some(TypeName::String) => match checks.and_then(|checks| checks.format.as_deref()) {
            Some("byte") => with_max_length(DeclType::bytes()),
            Some("date") => DeclType::date(),
            Some("date-time") => DeclType::date_time(),
            Some("duration") => DeclType::duration(),
            _ => {
                let allowed = checks.map(|checks| checks.enumeration.as_slice()).unwrap_or_default();
                if max_length.is_none() && !allowed.is_empty() {
                    DeclType::string().with_enum(allowed.iter().filter_map(Value::as_str))
                } else {
                    with_max_length(DeclType::string())
                }
            }
        },
        Some(TypeName::Array) => match &schema.items {
            None => DeclType::preserved(),
            Some(items) => {
                let list = DeclType::list(of_schema(items, items.embedded_resource));
                let list = match checks.and_then(|checks| checks.max_items) {
                    Some(max) => list.with_max_items(max),
                    None => list,
                };
                list.with_list_kind(match schema.list_type {
                    Some(ListType::Set) => ListKind::Set,
                    Some(ListType::Map) => ListKind::Map(schema.list_map_keys.clone()),
                    Some(ListType::Atomic) | None => ListKind::Atomic,
                })
            }
        },
        Some(TypeName::Object) => object(schema, resource),
    }
}

fn object(schema: &Schema, resource: bool) -> DeclType {
    let checks = schema.checks.as_deref();
    if let Additional::Schema(value) = &schema.additional {
        let map = DeclType::map(of_schema(value, value.embedded_resource));
        return match checks.and_then(|checks| checks.max_properties) {
            Some(max) => map.with_max_properties(max),
            None => map,
        };
    }
    let required = checks.map(|checks| checks.required.as_slice()).unwrap_or_default();
    let fields = schema.properties.iter().map(|(name, property)| {
        let mut field = Field::new(name, of_schema(property, property.embedded_resource));
        if required.contains(name) {
            field = field.required();
        }
        if property.default.is_some() {
            field = field.defaulted();
        }
        field
    });
    if resource { DeclType::resource(fields) } else { DeclType::object(fields) }
}
