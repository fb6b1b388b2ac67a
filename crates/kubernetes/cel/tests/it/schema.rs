//! Declared types from JSON schemas, as the tests write them.

use capstan_cel::{DeclType, Field, ListKind};
use serde_json::Value as Json;

pub fn decl(schema: &Json) -> DeclType {
    let plain = untyped_null(schema);
    if schema["nullable"] == true { plain.nullable() } else { plain }
}

fn untyped_null(schema: &Json) -> DeclType {
    let number = |key: &str| schema[key].as_i64();
    if schema["x-kubernetes-int-or-string"] == true {
        return DeclType::int_or_string();
    }
    match schema["type"].as_str() {
        Some("array") => {
            let mut list = DeclType::list(decl(&schema["items"]));
            if let Some(max) = number("maxItems") {
                list = list.with_max_items(max);
            }
            match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => list.with_list_kind(ListKind::Set),
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().unwrap();
                    let keys = keys.iter().map(|key| key.as_str().unwrap().to_owned()).collect();
                    list.with_list_kind(ListKind::Map(keys))
                }
                _ => list,
            }
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let map = DeclType::map(decl(&schema["additionalProperties"]));
            match number("maxProperties") {
                Some(max) => map.with_max_properties(max),
                None => map,
            }
        }
        Some("object") => {
            let required = |name: &str| {
                schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
            };
            let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, property)| {
                let field = Field::new(name.clone(), decl(property));
                if required(name) { field.required() } else { field }
            });
            match schema["x-kubernetes-embedded-resource"] == true {
                true => DeclType::resource(fields),
                false => DeclType::object(fields),
            }
        }
        Some("string") => {
            let text = match schema["format"].as_str() {
                Some("byte") => DeclType::bytes(),
                Some("date") => DeclType::date(),
                Some("date-time") => DeclType::date_time(),
                Some("duration") => DeclType::duration(),
                _ => DeclType::string(),
            };
            match (number("maxLength"), schema["enum"].as_array()) {
                (Some(max), _) => text.with_max_length(max),
                (None, Some(values)) => text.with_enum(values.iter().filter_map(Json::as_str)),
                (None, None) => text,
            }
        }
        Some("boolean") => DeclType::boolean(),
        Some("integer") => DeclType::int(),
        Some("number") => DeclType::double(),
        _ => DeclType::preserved(),
    }
}
