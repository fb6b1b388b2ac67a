//! ClusterClasses with their templates, clusters of them, and what a user does to a class.

use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlaneTemplate;
use capstan_capi_types::core::{Cluster, ClusterClass};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World};
use capstan_object::{Key, Object};
use capstan_sim_provider::types::{SimClusterTemplate, SimMachinePoolTemplate, SimMachineTemplate};
use serde_json::{Value, json};

use crate::expect::Shape;
use crate::manifests::{NAME, NAMESPACE, SILENCE, network, object};
use crate::scenario::{failed, patch};

/// Name of the class that a cluster is created with.
pub(crate) const CLASS: &str = "quick";
/// Name of the class that it moves to.
pub(crate) const OTHER: &str = "other";

/// Versions that an upgrade passes through.
pub(crate) const VERSIONS: [&str; 3] = ["v1.34.4", "v1.35.2", "v1.36.0"];

/// `spec.topology` of the cluster.
pub(crate) fn topology(shape: &Shape) -> Value {
    let variables: Vec<Value> =
        shape.variable.iter().map(|memory| json!({"name": "memory", "value": memory})).collect();
    let workers = if shape.pool {
        json!({"machinePools": [{"class": "pool", "name": "mp-0", "replicas": shape.workers}]})
    } else {
        json!({"machineDeployments": [{"class": "worker", "name": "md-0", "replicas": shape.workers}]})
    };
    let mut topology = json!({
        "classRef": {"name": shape.of_class},
        "version": shape.version,
        "controlPlane": {"replicas": shape.control_plane},
        "workers": workers,
    });
    if !variables.is_empty() {
        topology["variables"] = json!(variables);
    }
    topology
}

/// A reference of a class to a template.
fn template<T: Object>(name: &str) -> Value {
    let kind = T::KIND;
    json!({"templateRef": {
        "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind, "name": name,
    }})
}

/// Which templates a patch is for.
fn selector<T: Object>(resources: Value) -> Value {
    let kind = T::KIND;
    json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind,
        "matchResources": resources,
    })
}

/// The spec of a class whose machines are made from a template.
fn spec(network: bool, machines: &str) -> Value {
    let named = json!({"template": "{{ .cluster.name }}"});
    let mut infrastructure = template::<SimClusterTemplate>("clusters");
    infrastructure["naming"] = named.clone();
    let mut control_plane = template::<KubeadmControlPlaneTemplate>("control-planes");
    control_plane["naming"] = named;
    control_plane["machineInfrastructure"] = template::<SimMachineTemplate>(machines);
    let mut worker = json!({
        "class": "worker",
        "bootstrap": template::<KubeadmConfigTemplate>("workers"),
        "infrastructure": template::<SimMachineTemplate>(machines),
    });
    if network {
        let silent = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": SILENCE});
        let checks = json!({"checks": {
            "nodeStartupTimeoutSeconds": 600,
            "unhealthyNodeConditions": [silent("Unknown"), silent("False")],
        }});
        control_plane["healthCheck"] = checks.clone();
        worker["healthCheck"] = checks;
    }
    let of_machines = json!({"controlPlane": true, "machineDeploymentClass": {"names": ["worker"]}});
    let of_pools = json!({"machinePoolClass": {"names": ["pool"]}});
    let pool = json!({
        "class": "pool",
        "bootstrap": template::<KubeadmConfigTemplate>("workers"),
        "infrastructure": template::<SimMachinePoolTemplate>("pools"),
    });
    let set = |path: &str| json!([{"op": "add", "path": path, "valueFrom": {"variable": "memory"}}]);
    json!({
        "infrastructure": infrastructure,
        "controlPlane": control_plane,
        "workers": {"machineDeployments": [worker], "machinePools": [pool]},
        "kubernetesVersions": VERSIONS,
        "variables": [{
            "name": "memory", "required": false,
            "schema": {"openAPIV3Schema": {"type": "integer", "minimum": 512}},
        }],
        "patches": [{
            "name": "memory",
            "enabledIf": "{{ if .memory }}true{{ end }}",
            "definitions": [
                {
                    "selector": selector::<SimMachineTemplate>(of_machines),
                    "jsonPatches": set("/spec/template/spec/memoryMiB"),
                },
                {
                    "selector": selector::<SimMachinePoolTemplate>(of_pools),
                    "jsonPatches": set("/spec/template/spec/template/memoryMiB"),
                },
            ],
        }],
    })
}

/// A ClusterClass with its templates, and a cluster of it.
pub(crate) fn cluster(shape: &Shape) -> Vec<(KindName, Value)> {
    let joining = json!({"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "1"}]}});
    let domains = ["a", "b", "c"].map(|name| json!({"name": name, "controlPlane": true}));
    let of = |spec: Value| json!({"template": {"spec": spec}});
    let mut objects = vec![
        object::<SimMachinePoolTemplate>("pools", json!({}), of(json!({"template": {}}))),
        object::<SimClusterTemplate>("clusters", json!({}), of(json!({"failureDomains": domains}))),
        object::<SimMachineTemplate>("machines", json!({}), of(json!({}))),
        object::<KubeadmControlPlaneTemplate>(
            "control-planes",
            json!({}),
            of(json!({
                "kubeadmConfigSpec": {"joinConfiguration": joining},
                "remediation": {"minHealthyPeriodSeconds": 60},
            })),
        ),
        object::<KubeadmConfigTemplate>("workers", json!({}), of(json!({"joinConfiguration": joining}))),
        object::<ClusterClass>(CLASS, json!({}), spec(shape.network, "machines")),
        object::<Cluster>(
            NAME,
            json!({"cni": "sim"}),
            json!({
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}},
                "topology": topology(shape),
            }),
        ),
    ];
    if shape.network {
        objects.extend(network());
    }
    objects
}

async fn create(world: &World<'_>, (kind, body): (KindName, Value)) -> Result<(), Violation> {
    world.user()?.create(&kind, NAMESPACE, &body).await.map(drop).map_err(failed)
}

/// A template of machines with so much memory.
fn machines(name: &str, memory: i32) -> (KindName, Value) {
    let spec = json!({"template": {"spec": {"memoryMiB": memory}}});
    object::<SimMachineTemplate>(name, json!({}), spec)
}

/// Has the class use another template for its machines, and adds a class of workers that nobody uses.
pub(crate) async fn edit(world: &World<'_>, shape: &mut Shape, memory: i32) -> Result<(), Violation> {
    create(world, machines("edited", memory)).await?;
    let mut spec = spec(shape.network, "edited");
    let mut spare = spec["workers"]["machineDeployments"][0].clone();
    spare["class"] = "spare".into();
    spec["workers"]["machineDeployments"].as_array_mut().into_iter().for_each(|all| all.push(spare.clone()));
    shape.memory = Some(memory);
    patch::<ClusterClass>(world, shape.of_class, json!({"spec": spec})).await
}

/// Moves the cluster to a class with another template for its machines, and deletes the class that it leaves.
pub(crate) async fn rebase(world: &mut World<'_>, shape: &mut Shape, memory: i32) -> Result<(), Violation> {
    create(world, machines("other", memory)).await?;
    create(world, object::<ClusterClass>(OTHER, json!({}), spec(shape.network, "other"))).await?;
    // A cluster cannot move to a class that its controller has not seen.
    world.run_until_idle().await?;
    (shape.of_class, shape.memory) = (OTHER, Some(memory));
    patch::<Cluster>(world, NAME, json!({"spec": {"topology": topology(shape)}})).await?;
    world.run_until_idle().await?;
    delete(world, CLASS).await
}

pub(crate) async fn delete(world: &World<'_>, class: &str) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<ClusterClass>(), Key::new(NAMESPACE, class));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map(drop).map_err(failed)
}
