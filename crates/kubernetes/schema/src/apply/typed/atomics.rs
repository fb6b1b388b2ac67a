//! Parts of a partial object that would replace more than they name.

use serde_json::Value;

use super::Type;
use crate::apply::fieldpath::PathElement;

/// Most paths that are reported.
const MAX_PATHS: usize = 100;

/// The paths of all atomic lists, maps and structs in a value. Merging the value would drop everything else that the
/// other side has there.
pub fn atomics(value: &Value, of: Type<'_>) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, of, &mut String::new(), &mut found);
    found
}

fn walk(value: &Value, of: Type<'_>, path: &mut String, found: &mut Vec<String>) {
    if found.len() >= MAX_PATHS {
        return;
    }
    let atom = of.atom();
    let length = path.len();
    match value {
        Value::Object(fields) => {
            let Some(map) = atom.map else { return };
            if map.atomic {
                found.push(path.clone());
            }
            for (name, value) in fields {
                if let Some(field) = map.field(name) {
                    path.push_str(&PathElement::field(name.as_str()).to_string());
                    walk(value, field, path, found);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = atom.list else { return };
            if !list.associative {
                found.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, list.element, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
