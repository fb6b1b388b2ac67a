//! Clones objects from a provider's template.

use capstan_capi_types::core::{ContractVersionedObjectReference, TEMPLATE_SUFFIX, annotation};
use capstan_controller::{Effect, KindName};
use capstan_object::ObjectMeta;
use serde_json::{Map, Value, json};

use crate::contract::{External, kind_name};

/// The kind of objects cloned from a template: its kind without the suffix.
pub fn kind_of(template: &External) -> KindName {
    let kind = template.kind.kind.strip_suffix(TEMPLATE_SUFFIX).unwrap_or(&template.kind.kind);
    kind_name(&template.kind.group, &template.kind.version, kind)
}

/// A reference to a clone.
pub fn reference(template: &External, name: &str) -> ContractVersionedObjectReference {
    ContractVersionedObjectReference {
        kind: kind_of(template).kind.into_owned(),
        name: name.to_owned(),
        api_group: template.kind.group.to_string(),
    }
}

/// The template that an object was cloned from, as its annotations say.
pub fn origin(meta: &ObjectMeta) -> Option<ContractVersionedObjectReference> {
    let name = meta.annotations.get(annotation::CLONED_FROM_NAME)?;
    let (kind, group) = meta.annotations.get(annotation::CLONED_FROM_GROUP_KIND)?.split_once('.')?;
    Some(ContractVersionedObjectReference {
        kind: kind.to_owned(),
        name: name.clone(),
        api_group: group.to_owned(),
    })
}

/// Creates an object from a template: `spec.template`, with this metadata on top of the template's own.
pub fn create<K>(template: &External, meta: &ObjectMeta) -> Effect<K> {
    let kind = kind_of(template);
    let mut body = template.value()["spec"]["template"].clone();
    if !body.is_object() {
        body = json!({});
    }
    let mut meta = meta.clone();
    let mut put = |key: &str, value: String| drop(meta.annotations.insert(key.to_owned(), value));
    put(annotation::CLONED_FROM_NAME, template.metadata.name.clone());
    put(annotation::CLONED_FROM_GROUP_KIND, format!("{}.{}", template.kind.kind, template.kind.group));
    // Of the template's metadata only labels and annotations are copied.
    let mut own = Map::new();
    for name in ["labels", "annotations"] {
        if let Some(values) = body["metadata"].get(name) {
            own.insert(name.to_owned(), values.clone());
        }
    }
    let wanted = match serde_json::to_value(&meta) {
        Ok(wanted) => wanted,
        Err(error) => {
            return Effect::Impossible {
                what: format!("create {kind} {}", meta.name),
                why: error.to_string(),
            };
        }
    };
    let mut metadata = Value::Object(own);
    lay_over(&mut metadata, wanted);
    body["metadata"] = metadata;
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.kind.as_ref().into();
    Effect::Create { kind, body }
}

fn lay_over(base: &mut Value, top: Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => {
            for (key, value) in top {
                lay_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, top) => *base = top,
    }
}

#[cfg(test)]
mod tests {
    use capstan_controller::NoCall;

    use super::*;
    use crate::contract::ContractVersion;

    #[test]
    fn a_clone_has_the_templates_spec_and_records_its_origin() {
        let kind = KindName::namespaced("infra.x", "v1", "SimMachineTemplate", "simmachinetemplates");
        let value = json!({
            "metadata": {"name": "t", "namespace": "ns"},
            "spec": {"template": {
                "metadata": {"labels": {"a": "1"}, "finalizers": ["no"]},
                "spec": {"flavor": "small"},
            }},
        });
        let template = External::new(kind, ContractVersion::V1Beta2, value);
        let mut meta = ObjectMeta::named("ns", "m1");
        meta.labels.insert("b".to_owned(), "2".to_owned());
        let Effect::Create { kind, body } = create::<NoCall>(&template, &meta) else { panic!("a creation") };
        assert_eq!(kind.plural, "simmachines");
        assert_eq!(
            body,
            json!({
                "apiVersion": "infra.x/v1",
                "kind": "SimMachine",
                "metadata": {
                    "name": "m1",
                    "namespace": "ns",
                    "labels": {"a": "1", "b": "2"},
                    "annotations": {
                        "cluster.x-k8s.io/cloned-from-name": "t",
                        "cluster.x-k8s.io/cloned-from-groupkind": "SimMachineTemplate.infra.x",
                    },
                },
                "spec": {"flavor": "small"},
            })
        );
        assert_eq!(reference(&template, "m1").kind, "SimMachine");
        let made: ObjectMeta = serde_json::from_value(body["metadata"].clone()).expect("metadata");
        let origin = origin(&made).expect("an origin");
        assert_eq!(
            (&*origin.kind, &*origin.api_group, &*origin.name),
            ("SimMachineTemplate", "infra.x", "t")
        );
    }
}
