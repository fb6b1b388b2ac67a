//! Changes of existing objects to another template.

use capstan_capi_types::core::annotation;
use capstan_schema::patch::merge;
use serde_json::{Map, Value, json};

use super::is_marked;
use crate::contract::External;
use crate::propagate::merge_difference;

/// The merge patch that gives an object the spec of the template `to` and the mark of an update in place; `None` if it
/// has both. `from` is the template that it has now: what only that one sets is removed, what neither sets (such as what
/// its controller wrote) is kept.
pub fn to_template(object: &External, from: Option<&External>, to: &External) -> Option<Value> {
    let origin = [
        (annotation::CLONED_FROM_NAME, to.metadata.name.clone()),
        (annotation::CLONED_FROM_GROUP_KIND, format!("{}.{}", to.kind.kind, to.kind.group)),
    ];
    let annotations = &object.metadata.annotations;
    let is_clone = origin.iter().all(|(key, value)| annotations.get(*key) == Some(value));
    if is_clone && is_marked(&object.metadata) {
        return None;
    }
    let mut marks: Map<String, Value> =
        origin.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    marks.insert(annotation::UPDATE_IN_PROGRESS.to_owned(), "".into());
    let mut change = json!({"metadata": {"annotations": marks}});
    let spec = |template: &External| template.value()["spec"]["template"]["spec"].clone();
    let now = &object.value()["spec"];
    if let Some(spec) = merge_difference(now, &changed(now, from.map(spec).as_ref(), &spec(to))) {
        change["spec"] = spec;
    }
    Some(change)
}

/// An object after a change of [`to_template`].
pub fn changed_object(object: &External, change: &Value) -> Result<Value, String> {
    merge::apply(object.typed_value(), change.clone()).map_err(|error| error.to_string())
}

/// `now` with the fields of `to`, and without those that only `from` has. Lists are taken as a whole.
fn changed(now: &Value, from: Option<&Value>, to: &Value) -> Value {
    let Value::Object(to) = to else { return if to.is_null() { now.clone() } else { to.clone() } };
    let mut result = now.as_object().cloned().unwrap_or_default();
    let from = from.and_then(Value::as_object);
    for key in from.into_iter().flat_map(Map::keys).filter(|key| !to.contains_key(*key)) {
        result.remove(key);
    }
    for (key, to) in to {
        let before = from.and_then(|from| from.get(key));
        let value = changed(result.get(key).unwrap_or(&Value::Null), before, to);
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use capstan_controller::KindName;

    use super::*;
    use crate::contract::ContractVersion;

    fn template(name: &str, spec: Value) -> External {
        let kind = KindName::namespaced("infra.x", "v1", "SimMachineTemplate", "simmachinetemplates");
        let value = json!({"metadata": {"name": name}, "spec": {"template": {"spec": spec}}});
        External::new(kind, ContractVersion::V1Beta2, value)
    }

    fn object(annotations: &Value, spec: &Value) -> External {
        let kind = KindName::namespaced("infra.x", "v1", "SimMachine", "simmachines");
        let value = json!({"metadata": {"name": "m", "annotations": annotations}, "spec": spec});
        External::new(kind, ContractVersion::V1Beta2, value)
    }

    #[test]
    fn an_object_changes_to_a_template_and_keeps_what_others_set() {
        let old = template("old", json!({"size": "small", "disk": {"gb": 1, "kind": "ssd"}, "list": [1, 2]}));
        let new = template("new", json!({"size": "large", "disk": {"gb": 2}, "list": [3]}));
        let now = json!({
            "providerID": "p", "size": "small", "disk": {"gb": 1, "kind": "ssd", "id": "d"}, "list": [1, 2],
        });
        let marks = json!({
            "cluster.x-k8s.io/cloned-from-name": "new",
            "cluster.x-k8s.io/cloned-from-groupkind": "SimMachineTemplate.infra.x",
            "in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "",
        });
        assert_eq!(
            to_template(&object(&json!({}), &now), Some(&old), &new),
            Some(json!({
                "metadata": {"annotations": marks},
                "spec": {"size": "large", "disk": {"gb": 2, "kind": null}, "list": [3]},
            }))
        );
        let without_old = to_template(&object(&json!({}), &now), None, &new).expect("a change");
        assert_eq!(without_old["spec"]["disk"], json!({"gb": 2}), "nobody knows who set the kind");
        assert_eq!(to_template(&object(&marks, &now), Some(&old), &new), None, "it was changed before");
    }
}
