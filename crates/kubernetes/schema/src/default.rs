//! Sets the defaults of a schema.

use serde_json::Value;

use crate::Schema;
use crate::memory::{MemoryBudget, TooLarge, map_entry, tree};

/// Sets defaults. A null where null is not allowed counts as absent. Defaults are defaulted in turn. Their size is
/// charged to the budget: three bytes (`{},`) can expand to a large default.
pub fn apply(value: &mut Value, schema: &Schema, budget: &MemoryBudget) -> Result<(), TooLarge> {
    match value {
        Value::Object(fields) => {
            for (key, property) in &schema.properties {
                if let Some(default) = &property.default {
                    let position = fields.len();
                    match fields.get_mut(key) {
                        Some(value) if value.is_null() && !property.nullable => {
                            budget.spend(tree(default))?;
                            value.clone_from(default);
                        }
                        Some(_) => {}
                        None => {
                            budget.spend(map_entry(position, key) + tree(default))?;
                            fields.insert(key.clone(), default.clone());
                        }
                    }
                }
            }
            for (key, value) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(key) {
                    apply(value, property, budget)?;
                } else if let Some(additional) = schema.additional_schema() {
                    element(value, additional, budget)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().try_for_each(|item| element(item, schema, budget))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// An entry of a list or map. It cannot be absent, so a null becomes the default, or stays null.
fn element(value: &mut Value, schema: &Schema, budget: &MemoryBudget) -> Result<(), TooLarge> {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        budget.spend(tree(default))?;
        value.clone_from(default);
    }
    apply(value, schema, budget)
}

/// Removes nulls from fields that neither allow null nor have a default.
pub fn prune_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            let schema = schema.and_then(|schema| schema.child(key)).map(AsRef::as_ref);
            if let (Value::Null, Some(schema)) = (&*value, schema)
                && !schema.nullable
                && schema.default.is_none()
            {
                return false;
            }
            prune_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| prune_nulls(item, schema));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, mut value: Value, expected: Value) {
        let schema = Schema::from_json(&schema).expect("valid schema");
        prune_nulls(&mut value, Some(&schema));
        apply(&mut value, &schema, &MemoryBudget::default()).expect("little is filled in");
        assert_eq!(value, expected);
    }

    #[test]
    fn absent_fields_get_their_defaults_and_those_of_their_parts() {
        let schema = json!({"properties": {
            "a": {"default": "A"},
            "b": {"properties": {"c": {"default": "C"}}},
            "d": {"default": {}, "properties": {"e": {"default": "E"}}},
        }});
        check(schema.clone(), json!({}), json!({"a": "A", "d": {"e": "E"}}));
        check(schema, json!({"a": "x", "b": {}}), json!({"a": "x", "b": {"c": "C"}, "d": {"e": "E"}}));
    }

    #[test]
    fn entries_of_lists_and_maps_are_defaulted() {
        check(
            json!({"properties": {
                "l": {"items": {"properties": {"x": {"default": 1}}}},
                "m": {"additionalProperties": {"properties": {"x": {"default": 1}}}},
            }}),
            json!({"l": [{}, {"x": 2}], "m": {"k": {}}}),
            json!({"l": [{"x": 1}, {"x": 2}], "m": {"k": {"x": 1}}}),
        );
    }

    #[test]
    fn defaults_do_not_multiply_what_was_sent() {
        let schema = json!({"items": {"properties": {"x": {"default": "x".repeat(10_000)}}}});
        let schema = Schema::from_json(&schema).expect("valid schema");
        let mut value = json!(vec![json!({}); 1_000_000]);
        assert_eq!(apply(&mut value, &schema, &MemoryBudget::default()), Err(TooLarge));
    }

    #[test]
    fn nulls_are_dropped_replaced_or_kept() {
        check(
            json!({"properties": {
                "plain": {"type": "string"},
                "defaulted": {"type": "string", "default": "x"},
                "nullable": {"type": "string", "nullable": true, "default": "x"},
                "list": {"items": {"type": "string"}},
            }}),
            json!({"plain": null, "defaulted": null, "nullable": null, "list": [null], "unknown": null}),
            json!({"defaulted": "x", "nullable": null, "list": [null], "unknown": null}),
        );
    }
}
