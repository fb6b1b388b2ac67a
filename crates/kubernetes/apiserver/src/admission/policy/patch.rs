//! Patches that expressions compute.

use capstan_cel::{Map as CelMap, Value as CelValue};
use capstan_schema::Schema;
use capstan_schema::apply::typed::{self, Duplicates, Type};
use capstan_schema::patch::json::Patch;
use serde_json::{Map, Value};

/// The object with an apply configuration merged into it.
pub(super) fn apply(object: &Value, computed: &CelValue<'_>, schema: &Schema) -> Result<Value, String> {
    check_type_names(computed)?;
    let mut configuration = computed.to_json().map_err(|error| error.to_string())?;
    let Value::Object(fields) = &mut configuration else {
        return Err("unsupported return type from ApplyConfiguration expression".into());
    };
    for key in ["apiVersion", "kind"] {
        fields.insert(key.to_owned(), object[key].clone());
    }
    let of = Type::object(schema);
    let wrong = |why: String| format!("error applying patch: {why}");
    typed::validate(&configuration, of, Duplicates::Refused)
        .map_err(|errors| wrong(format!("failed to convert patch object to typed object: {errors}")))?;
    let atomics = typed::atomics(&configuration, of);
    if !atomics.is_empty() {
        return Err(wrong(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        )));
    }
    let merged = typed::merge(object, &configuration, of)
        .map_err(|errors| wrong(format!("failed to merge patch: {errors}")))?;
    Ok(merged.unwrap_or_default())
}

/// The object with a JSON patch applied. If a `test` does not hold, the object stays as it is.
pub(super) fn json_patch(object: &Value, computed: &CelValue<'_>) -> Result<Value, String> {
    let CelValue::List(operations) = computed else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".into());
    };
    let mut body = Vec::new();
    for operation in operations.iter() {
        let operation = operation.map_err(|error| error.to_string())?;
        let CelValue::Map(fields) = &operation else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".into()
            );
        };
        body.push(Value::Object(json_operation(fields)?));
    }
    let patch = Patch::decode(Value::Array(body), false).map_err(|error| error.to_string())?;
    match patch.apply(object.clone()) {
        Ok(patched) => Ok(patched),
        Err(error) if error.is_failed_test() => Ok(object.clone()),
        Err(error) => Err(format!("JSON Patch: {error}")),
    }
}

fn json_operation(fields: &CelMap<'_>) -> Result<Map<String, Value>, String> {
    let mut operation = Map::new();
    for key in ["op", "path", "from"] {
        let text = match fields.get(key) {
            None => "".to_owned(),
            Some(value) => {
                let value = value.map_err(|error| error.to_string())?;
                let text = value.as_str().map(str::to_owned);
                text.ok_or_else(|| format!("unexpected type for JSONPatchType '{key}' field"))?
            }
        };
        if key != "from" || !text.is_empty() {
            operation.insert(key.to_owned(), text.into());
        }
    }
    if let Some(value) = fields.get("value") {
        let value = value.map_err(|error| error.to_string())?;
        check_type_names(&value)?;
        let json = value.to_json().map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })?;
        operation.insert("value".to_owned(), json);
    }
    Ok(operation)
}

/// Whether the types of nested objects are the paths at which they stand: `Object.spec{selector: Object.spec.wrong{}}`
/// is a mistake that the checker does not find.
fn check_type_names(value: &CelValue<'_>) -> Result<(), String> {
    let CelValue::Map(map) = value else { return Ok(()) };
    let Some(root) = map.constructed_type() else { return Ok(()) };
    let mut wrong = Vec::new();
    compare_type_names(value, root, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn compare_type_names(value: &CelValue<'_>, expected: &str, wrong: &mut Vec<String>) {
    match value {
        CelValue::Map(map) => {
            let constructed = map.constructed_type();
            if let Some(found) = constructed.filter(|found| *found != expected) {
                wrong.push(format!(
                    "unexpected type name {found:?}, expected {expected:?}, which matches field name path from \
                     root Object type"
                ));
            }
            for (key, value) in map.iter() {
                let Ok(value) = value else { continue };
                match constructed {
                    Some(_) => compare_type_names(&value, &format!("{expected}.{key}"), wrong),
                    None => compare_type_names(&value, expected, wrong),
                }
            }
        }
        CelValue::List(list) => {
            for item in list.iter().flatten() {
                compare_type_names(&item, expected, wrong);
            }
        }
        _ => {}
    }
}
