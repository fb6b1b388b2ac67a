//! Objects and templates made from the templates of a class.

use std::collections::BTreeMap;

use capstan_capi_core::contract::External;
use capstan_capi_types::core::{Cluster, annotation, label};
use capstan_controller::{KindName, ObjectRef};
use capstan_object::{Key, OwnerReference};
use serde_json::{Map, Value, json};

/// An object as it should be: the fields that the topology owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    pub kind: KindName,
    pub body: Value,
}

pub(super) type Texts = BTreeMap<String, String>;

/// Annotations that hold copies of the object they are on.
pub(super) const COPIES: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", annotation::CONVERSION_DATA];

impl Intent {
    pub fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn rename(&mut self, name: &str) {
        self.body["metadata"]["name"] = name.into();
    }

    pub fn reference(&self) -> ObjectRef {
        let namespace = self.body["metadata"]["namespace"].as_str().unwrap_or_default();
        ObjectRef::new(self.kind.clone(), Key::new(namespace, self.name()))
    }

    /// An empty host and a port of zero are not applied, each for itself: the provider may set them, and a class often
    /// fixes the port alone.
    pub(super) fn without_empty_endpoint(&mut self) {
        let Some(spec) = self.body["spec"].as_object_mut() else { return };
        let Some(endpoint) = spec.get_mut("controlPlaneEndpoint").and_then(Value::as_object_mut) else {
            return;
        };
        let fields = endpoint.len();
        endpoint.retain(|field, value| match field.as_str() {
            "host" => !(value.is_null() || *value == ""),
            "port" => !(value.is_null() || *value == 0),
            _ => true,
        });
        if endpoint.is_empty() && fields > 0 {
            spec.remove("controlPlaneEndpoint");
        }
    }
}

/// An object of a cluster, from a template of the class.
pub(super) fn from_template(
    template: &External,
    cluster: &Cluster,
    name: &str,
    labels: &Texts,
    annotations: &Texts,
) -> Intent {
    // The same as the controller of Clusters sets: a reference is applied as a whole, and the two would not agree on less.
    let owner = OwnerReference::controlled_by(cluster);
    instance(template, cluster, name, labels, annotations, &owner)
}

/// An object that a MachinePool controls, from a template of the class.
pub(super) fn of_pool(template: &External, cluster: &Cluster, name: &str, labels: &Texts) -> Intent {
    instance(template, cluster, name, labels, &Texts::new(), &OwnerReference::to(cluster))
}

fn instance(
    template: &External,
    cluster: &Cluster,
    name: &str,
    labels: &Texts,
    annotations: &Texts,
    owner: &OwnerReference,
) -> Intent {
    let kind = super::kind_of(template);
    let inner = &template.value()["spec"]["template"];
    let mut body = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": metadata(template, cluster, name, &inner["metadata"], labels, annotations, owner),
    });
    if let Some(spec) = inner.get("spec") {
        body["spec"] = spec.clone();
    }
    Intent { kind, body }
}

/// A template of a cluster, from one of the class: so that it can have what is special to the cluster.
pub(super) fn copy_of_template(template: &External, cluster: &Cluster, name: &str, labels: &Texts) -> Intent {
    let mut source = template.value()["metadata"].clone();
    if let Some(annotations) = source["annotations"].as_object_mut() {
        annotations.retain(|name, _| !COPIES.contains(&name.as_str()));
    }
    let mut body = json!({
        "apiVersion": template.kind.api_version(),
        "kind": template.kind.kind,
        "metadata": metadata(template, cluster, name, &source, labels, &Texts::new(), &OwnerReference::to(cluster)),
    });
    // A template may have no spec, and null would be refused.
    if let Some(spec) = template.value().get("spec") {
        body["spec"] = spec.clone();
    }
    Intent { kind: template.kind.clone(), body }
}

fn metadata(
    template: &External,
    cluster: &Cluster,
    name: &str,
    source: &Value,
    labels: &Texts,
    annotations: &Texts,
    owner: &OwnerReference,
) -> Value {
    let texts = |field: &str, more: &Texts| -> Map<String, Value> {
        let mut all = source[field].as_object().cloned().unwrap_or_default();
        all.extend(more.iter().map(|(key, text)| (key.clone(), text.as_str().into())));
        all
    };
    let mut labels = texts("labels", labels);
    labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.as_str().into());
    labels.insert(label::TOPOLOGY_OWNED.to_owned(), "".into());
    let mut annotations = texts("annotations", annotations);
    let group_kind = format!("{}.{}", template.kind.kind, template.kind.group);
    annotations.insert(annotation::CLONED_FROM_NAME.to_owned(), template.metadata.name.as_str().into());
    annotations.insert(annotation::CLONED_FROM_GROUP_KIND.to_owned(), group_kind.into());
    json!({
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": labels,
        "annotations": annotations,
        // Upstream has a Secret own the object until the cluster names it. Here the cluster is the owner from the
        // beginning, so that nothing is left if the cluster is deleted meanwhile.
        "ownerReferences": [owner],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_empty_part_of_an_endpoint_is_left_to_the_provider() {
        for (endpoint, applied) in [
            (json!({"host": "", "port": 0}), None),
            (json!({"host": "", "port": 6443}), Some(json!({"port": 6443}))),
            (json!({"host": "a.example", "port": 0}), Some(json!({"host": "a.example"}))),
            (json!({"host": "a.example", "port": 6443}), Some(json!({"host": "a.example", "port": 6443}))),
            (json!({"port": 6443}), Some(json!({"port": 6443}))),
            (json!({"host": null}), None),
            (json!({"host": "", "port": 0, "more": 1}), Some(json!({"more": 1}))),
            (json!({}), Some(json!({}))),
        ] {
            let kind = KindName::namespaced("infra", "v1", "InfraCluster", "infraclusters");
            let body = json!({"spec": {"controlPlaneEndpoint": endpoint, "network": "a"}});
            let mut intent = Intent { kind, body };
            intent.without_empty_endpoint();
            assert_eq!(intent.body["spec"].get("controlPlaneEndpoint"), applied.as_ref(), "{endpoint}");
            assert_eq!(intent.body["spec"]["network"], "a");
        }
    }
}
