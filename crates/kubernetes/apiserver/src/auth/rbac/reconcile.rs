//! Reconciles the bootstrap policy with what is stored: adds missing permissions and subjects and keeps what an
//! administrator added. An annotation opts an object out.

use serde_json::{Map, Value};

use super::coverage::uncovered;
use super::policy::text;
use super::rule::PolicyRule;

/// Objects with this annotation set to `false` are not changed.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What to do so that a stored object contains the bootstrap policy.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciliation {
    /// It does already, or it opted out.
    Nothing,
    Create(Value),
    /// Replace the stored object.
    Update(Value),
    /// Delete the stored object and create this one: a binding's role is immutable.
    Recreate(Value),
}

/// Compares a stored object with the expected one.
pub fn reconcile(existing: Option<&Value>, expected: &Value) -> Reconciliation {
    let Some(existing) = existing else { return Reconciliation::Create(expected.clone()) };
    if text(&existing["metadata"]["annotations"][AUTO_UPDATE]) == "false" {
        return Reconciliation::Nothing;
    }
    if expected.get("roleRef").is_some() && expected["roleRef"] != existing["roleRef"] {
        return Reconciliation::Recreate(expected.clone());
    }
    let mut reconciled = existing.clone();
    for field in ["annotations", "labels"] {
        add_missing(&mut reconciled["metadata"], field, &expected["metadata"][field]);
    }
    match expected.get("roleRef") {
        Some(_) => add_items(&mut reconciled, "subjects", items(&expected["subjects"])),
        None => {
            let (held, wanted) = (PolicyRule::list_from_json(existing), PolicyRule::list_from_json(expected));
            let Ok(missing) = uncovered(&held, &wanted) else {
                tracing::warn!(
                    role = text(&expected["metadata"]["name"]),
                    "the role has too many rules to compare; it is not reconciled"
                );
                return Reconciliation::Nothing;
            };
            // The bootstrap policy is small enough to expand.
            let missing: Vec<Value> = missing.atoms(usize::MAX).iter().map(PolicyRule::to_json).collect();
            add_items(&mut reconciled, "rules", &missing);
            reconcile_selectors(&mut reconciled, expected);
        }
    }
    if reconciled == *existing { Reconciliation::Nothing } else { Reconciliation::Update(reconciled) }
}

fn reconcile_selectors(role: &mut Value, expected: &Value) {
    match expected.get("aggregationRule") {
        None => {
            if let Some(role) = role.as_object_mut() {
                role.remove("aggregationRule");
            }
        }
        Some(rule) => {
            if !role["aggregationRule"].is_object() {
                role["aggregationRule"] = Value::Object(Map::new());
            }
            add_items(
                &mut role["aggregationRule"],
                "clusterRoleSelectors",
                items(&rule["clusterRoleSelectors"]),
            );
        }
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Adds those of `wanted` that the list under `field` lacks.
fn add_items(object: &mut Value, field: &str, wanted: &[Value]) {
    let missing: Vec<Value> =
        wanted.iter().filter(|item| !items(&object[field]).contains(item)).cloned().collect();
    if missing.is_empty() {
        return;
    }
    match object[field].as_array_mut() {
        Some(list) => list.extend(missing),
        None => object[field] = missing.into(),
    }
}

/// Adds entries that the map under `field` lacks; existing ones stay.
fn add_missing(metadata: &mut Value, field: &str, wanted: &Value) {
    let Some(wanted) = wanted.as_object() else { return };
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    for (key, value) in wanted {
        if metadata[field].get(key).is_none() {
            metadata[field][key] = value.clone();
        }
    }
}
