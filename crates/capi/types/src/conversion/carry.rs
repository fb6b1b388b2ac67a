//! Applies a change to another object.

use serde_json::Value;

/// Applies the change from `before` to `after` to `onto`; lists are replaced as a whole.
pub(super) fn carry(before: &Value, after: &Value, onto: &mut Value) {
    if before == after {
        return;
    }
    let (Value::Object(before), Value::Object(after), Value::Object(onto)) = (before, after, &mut *onto)
    else {
        *onto = after.clone();
        return;
    };
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        onto.remove(key);
    }
    for (key, value) in after {
        match (before.get(key), onto.get_mut(key)) {
            (Some(old), _) if old == value => {}
            (Some(old), Some(onto)) => carry(old, value, onto),
            _ => {
                onto.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_are_applied() {
        let mut onto = json!({ "kept": 1, "gone": 1, "deep": { "kept": 1, "changed": 1 }, "list": [1] });
        carry(
            &json!({ "gone": 1, "deep": { "changed": 1 }, "list": [1] }),
            &json!({ "deep": { "changed": 2, "new": 3 }, "list": [2] }),
            &mut onto,
        );
        assert_eq!(onto, json!({ "kept": 1, "deep": { "kept": 1, "changed": 2, "new": 3 }, "list": [2] }));
    }
}
