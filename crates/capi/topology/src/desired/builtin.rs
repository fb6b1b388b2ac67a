//! Variables that every cluster has.

use capstan_capi_types::core::topology::ClusterVariable;
use capstan_capi_types::core::{Cluster, ClusterClass, MachineTemplateSpec, label};
use capstan_object::ObjectMeta;
use serde_json::{Map, Value, json};

use super::object::{COPIES, Intent, Texts};
use super::{Desired, DesiredDeployment, DesiredPool};
use crate::blueprint::Blueprint;
use crate::patches::value;

pub(super) fn values(variables: &[ClusterVariable]) -> Map<String, Value> {
    variables.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect()
}

/// Names of variables with who defines them.
pub(super) fn defined(class: &ClusterClass) -> Vec<(String, String)> {
    let of = |variable: &capstan_capi_types::core::cluster_class::ClusterClassStatusVariable| {
        let name = variable.name.clone();
        variable.definitions.iter().map(move |one| (name.clone(), one.from.clone())).collect::<Vec<_>>()
    };
    class.status.variables.iter().flat_map(of).collect()
}

/// Annotations without those that hold copies of the object.
fn plain(annotations: &Texts) -> Texts {
    let mut annotations = annotations.clone();
    // Ours change while the cluster stays the same.
    annotations.retain(|name, _| !COPIES.contains(&name.as_str()) && !name.contains("capstan.dev/"));
    annotations
}

fn metadata(labels: &Texts, annotations: &Texts) -> Value {
    let mut metadata = json!({});
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    let annotations = plain(annotations);
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    metadata
}

pub(super) fn cluster(blueprint: &Blueprint, cluster: &Cluster) -> Value {
    let topology = &cluster.spec.topology;
    let class = &blueprint.class.metadata;
    let mut labels = cluster.metadata.labels.clone();
    labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    labels.insert(label::TOPOLOGY_OWNED.to_owned(), String::new());
    let mut builtin = json!({
        "name": cluster.metadata.name,
        "namespace": cluster.metadata.namespace,
        "uid": cluster.metadata.uid,
        "metadata": metadata(&labels, &cluster.metadata.annotations),
        "topology": {
            "version": topology.version,
            "class": class.name,
            "classNamespace": class.namespace,
            "classRef": {"name": class.name, "namespace": class.namespace},
        },
    });
    let network = &cluster.spec.cluster_network;
    if !network.service_domain.is_empty() {
        value::put(&mut builtin, &["network", "serviceDomain"], network.service_domain.as_str().into());
    }
    for (name, ranges) in [("services", &network.services), ("pods", &network.pods)] {
        if !ranges.cidr_blocks.is_empty() {
            value::put(&mut builtin, &["network", name], json!(ranges.cidr_blocks));
        }
    }
    json!({"cluster": builtin})
}

pub(super) fn control_plane(blueprint: &Blueprint, desired: &Desired) -> Value {
    let body = &desired.control_plane.body;
    let texts = |field: &str| -> Texts {
        serde_json::from_value(body["metadata"][field].clone()).unwrap_or_default()
    };
    let mut builtin = json!({
        "name": desired.control_plane.name(),
        "version": body["spec"]["version"],
        "metadata": metadata(&texts("labels"), &texts("annotations")),
    });
    if let Some(replicas) = blueprint.topology.control_plane.replicas {
        builtin["replicas"] = replicas.into();
    }
    if let Some(machines) = &desired.control_plane_machines {
        builtin["machineTemplate"] = json!({"infrastructureRef": {"name": machines.name()}});
    }
    json!({"controlPlane": builtin})
}

pub(super) fn deployment(class: &str, topology: &str, desired: &DesiredDeployment) -> Value {
    let DesiredDeployment { object, bootstrap, infrastructure, .. } = desired;
    let replicas = object.spec.replicas;
    let builtin = workers(
        (class, topology),
        &object.metadata,
        &object.spec.template,
        replicas,
        [bootstrap, infrastructure],
    );
    json!({"machineDeployment": builtin})
}

pub(super) fn pool(class: &str, topology: &str, desired: &DesiredPool) -> Value {
    let DesiredPool { object, bootstrap, infrastructure } = desired;
    let replicas = object.spec.replicas;
    let builtin = workers(
        (class, topology),
        &object.metadata,
        &object.spec.template,
        replicas,
        [bootstrap, infrastructure],
    );
    json!({"machinePool": builtin})
}

fn workers(
    (class, topology): (&str, &str),
    object: &ObjectMeta,
    template: &MachineTemplateSpec,
    replicas: Option<i32>,
    [bootstrap, infrastructure]: [&Intent; 2],
) -> Value {
    let mut builtin = json!({
        "version": template.spec.version,
        "class": class,
        "name": object.name,
        "topologyName": topology,
        "metadata": metadata(&object.labels, &object.annotations),
        "bootstrap": {"configRef": {"name": bootstrap.name()}},
        "infrastructureRef": {"name": infrastructure.name()},
    });
    if let Some(replicas) = replicas {
        builtin["replicas"] = replicas.into();
    }
    builtin
}
