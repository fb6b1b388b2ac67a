//! The manifests of a minimal cluster.

use crate::expect::Shape;
use capstan_controller::KindName;
use capstan_object::Object;
use serde_json::{Value, json};

use capstan_capi_types::addons::ClusterResourceSet;
use capstan_capi_types::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use capstan_capi_types::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use capstan_capi_types::core::{Cluster, ClusterClass, MachineDeployment, MachineHealthCheck, MachinePool};
use capstan_sim_provider::types::{
    SimCluster, SimClusterTemplate, SimMachinePool, SimMachinePoolTemplate, SimMachineTemplate,
};

/// Name of the cluster, of its control plane, and of its other objects.
pub(crate) const NAME: &str = "c";
/// Name of the MachineDeployment or MachinePool.
pub(crate) const WORKERS: &str = "c-workers";
pub(crate) const NAMESPACE: &str = "default";

/// Seconds without a heartbeat after which a machine is replaced.
const SILENCE: i32 = 120;

fn object<T: Object>(name: &str, labels: Value, spec: Value) -> (KindName, Value) {
    let kind = KindName::of::<T>();
    let body = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    });
    (kind, body)
}

fn reference<T: Object>(name: &str) -> Value {
    json!({"apiGroup": T::KIND.group, "kind": T::KIND.kind, "name": name})
}

/// Name of the ClusterClass.
pub(crate) const CLASS: &str = "quick";

/// `spec.topology` of the cluster.
pub(crate) fn topology(shape: &Shape) -> Value {
    let variables: Vec<Value> =
        shape.memory.iter().map(|memory| json!({"name": "memory", "value": memory})).collect();
    let workers = if shape.pool {
        json!({"machinePools": [{"class": "pool", "name": "mp-0", "replicas": shape.workers}]})
    } else {
        json!({"machineDeployments": [{"class": "worker", "name": "md-0", "replicas": shape.workers}]})
    };
    let mut topology = json!({
        "classRef": {"name": CLASS},
        "version": shape.version,
        "controlPlane": {"replicas": shape.control_plane},
        "workers": workers,
    });
    if !variables.is_empty() {
        topology["variables"] = json!(variables);
    }
    topology
}

/// A ClusterClass with its templates, and a cluster of it.
fn cluster_of_class(shape: &Shape) -> Vec<(KindName, Value)> {
    let joining = json!({"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "1"}]}});
    let domains = ["a", "b", "c"].map(|name| json!({"name": name, "controlPlane": true}));
    let template = |kind: capstan_object::Kind, name: &str| {
        json!({"templateRef": {
            "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind, "name": name,
        }})
    };
    let machines = template(SimMachineTemplate::KIND, "machines");
    let named = json!({"template": "{{ .cluster.name }}"});
    let mut infrastructure = template(SimClusterTemplate::KIND, "clusters");
    infrastructure["naming"] = named.clone();
    let mut control_plane = template(KubeadmControlPlaneTemplate::KIND, "control-planes");
    control_plane["naming"] = named;
    control_plane["machineInfrastructure"] = machines.clone();
    let mut worker = json!({
        "class": "worker",
        "bootstrap": template(KubeadmConfigTemplate::KIND, "workers"),
        "infrastructure": machines,
    });
    if shape.network {
        let silent = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": SILENCE});
        let checks = json!({"checks": {
            "nodeStartupTimeoutSeconds": 600,
            "unhealthyNodeConditions": [silent("Unknown"), silent("False")],
        }});
        control_plane["healthCheck"] = checks.clone();
        worker["healthCheck"] = checks;
    }
    let selector = json!({
        "apiVersion": format!("{}/{}", SimMachineTemplate::KIND.group, SimMachineTemplate::KIND.version),
        "kind": SimMachineTemplate::KIND.kind,
        "matchResources": {"controlPlane": true, "machineDeploymentClass": {"names": ["worker"]}},
    });
    let of_pools = json!({
        "apiVersion": format!("{}/{}", SimMachinePoolTemplate::KIND.group, SimMachinePoolTemplate::KIND.version),
        "kind": SimMachinePoolTemplate::KIND.kind,
        "matchResources": {"machinePoolClass": {"names": ["pool"]}},
    });
    let pool = json!({
        "class": "pool",
        "bootstrap": template(KubeadmConfigTemplate::KIND, "workers"),
        "infrastructure": template(SimMachinePoolTemplate::KIND, "pools"),
    });
    let mut objects = vec![
        object::<SimMachinePoolTemplate>("pools", json!({}), json!({"template": {"spec": {"template": {}}}})),
        object::<SimClusterTemplate>(
            "clusters",
            json!({}),
            json!({"template": {"spec": {"failureDomains": domains}}}),
        ),
        object::<SimMachineTemplate>("machines", json!({}), json!({"template": {"spec": {}}})),
        object::<KubeadmControlPlaneTemplate>(
            "control-planes",
            json!({}),
            json!({"template": {"spec": {
                "kubeadmConfigSpec": {"joinConfiguration": joining},
                "remediation": {"minHealthyPeriodSeconds": 60},
            }}}),
        ),
        object::<KubeadmConfigTemplate>(
            "workers",
            json!({}),
            json!({"template": {"spec": {"joinConfiguration": joining}}}),
        ),
        object::<ClusterClass>(
            CLASS,
            json!({}),
            json!({
                "infrastructure": infrastructure,
                "controlPlane": control_plane,
                "workers": {"machineDeployments": [worker], "machinePools": [pool]},
                "variables": [{
                    "name": "memory", "required": false,
                    "schema": {"openAPIV3Schema": {"type": "integer", "minimum": 512}},
                }],
                "patches": [{
                    "name": "memory",
                    "enabledIf": "{{ if .memory }}true{{ end }}",
                    "definitions": [
                        {
                            "selector": selector,
                            "jsonPatches": [{
                                "op": "add", "path": "/spec/template/spec/memoryMiB",
                                "valueFrom": {"variable": "memory"},
                            }],
                        },
                        {
                            "selector": of_pools,
                            "jsonPatches": [{
                                "op": "add", "path": "/spec/template/spec/template/memoryMiB",
                                "valueFrom": {"variable": "memory"},
                            }],
                        },
                    ],
                }],
            }),
        ),
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

/// All objects of a cluster, in the order of a manifest file.
pub(crate) fn cluster(shape: &Shape) -> Vec<(KindName, Value)> {
    if shape.class {
        return cluster_of_class(shape);
    }
    let Shape { control_plane, version, .. } = shape;
    let joining = json!({"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "1"}]}});
    let domains = ["a", "b", "c"].map(|name| json!({"name": name, "controlPlane": true}));
    let mut objects = vec![
        object::<SimMachineTemplate>(NAME, json!({}), json!({"template": {"spec": {}}})),
        object::<SimCluster>(NAME, json!({}), json!({ "failureDomains": domains })),
        object::<KubeadmControlPlane>(
            NAME,
            json!({}),
            json!({
                "replicas": control_plane, "version": version,
                "machineTemplate": {"spec": {"infrastructureRef": reference::<SimMachineTemplate>(NAME)}},
                "kubeadmConfigSpec": {"joinConfiguration": joining},
                "remediation": {"minHealthyPeriodSeconds": 60},
            }),
        ),
        object::<Cluster>(
            NAME,
            json!({"cni": "sim"}),
            json!({
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}},
                "infrastructureRef": reference::<SimCluster>(NAME),
                "controlPlaneRef": reference::<KubeadmControlPlane>(NAME),
            }),
        ),
    ];
    objects.extend(if shape.pool { pool(shape, &joining) } else { deployment(shape, &joining) });
    if shape.network {
        objects.extend(health_checks());
        objects.extend(network());
    }
    objects
}

/// Workers as a MachineDeployment.
fn deployment(shape: &Shape, joining: &Value) -> Vec<(KindName, Value)> {
    vec![
        object::<KubeadmConfigTemplate>(
            WORKERS,
            json!({}),
            json!({"template": {"spec": {"joinConfiguration": joining}}}),
        ),
        object::<MachineDeployment>(
            WORKERS,
            json!({}),
            json!({
                "clusterName": NAME, "replicas": shape.workers,
                "selector": {"matchLabels": {}},
                "template": {"spec": {
                    "clusterName": NAME, "version": shape.version,
                    "bootstrap": {"configRef": reference::<KubeadmConfigTemplate>(WORKERS)},
                    "infrastructureRef": reference::<SimMachineTemplate>(NAME),
                }},
            }),
        ),
    ]
}

/// Workers as a MachinePool.
fn pool(shape: &Shape, joining: &Value) -> Vec<(KindName, Value)> {
    vec![
        object::<KubeadmConfig>(WORKERS, json!({}), json!({"joinConfiguration": joining})),
        object::<SimMachinePool>(WORKERS, json!({}), json!({"template": {}})),
        object::<MachinePool>(
            WORKERS,
            json!({}),
            json!({
                "clusterName": NAME, "replicas": shape.workers,
                "template": {"spec": {
                    "clusterName": NAME, "version": shape.version,
                    "bootstrap": {"configRef": reference::<KubeadmConfig>(WORKERS)},
                    "infrastructureRef": reference::<SimMachinePool>(WORKERS),
                }},
            }),
        ),
    ]
}

fn health_checks() -> [(KindName, Value); 2] {
    [
        health_check(WORKERS, json!({"matchLabels": {"cluster.x-k8s.io/deployment-name": WORKERS}})),
        health_check(
            NAME,
            json!({"matchExpressions": [
                {"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"},
            ]}),
        ),
    ]
}

fn health_check(name: &str, selector: Value) -> (KindName, Value) {
    let silent = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": SILENCE});
    object::<MachineHealthCheck>(
        name,
        json!({}),
        json!({
            "clusterName": NAME, "selector": selector,
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [silent("Unknown"), silent("False")],
            },
        }),
    )
}

/// A CNI for the cluster: without one its nodes do not become ready.
fn network() -> Vec<(KindName, Value)> {
    let labels = json!({"app": "cni"});
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "cni", "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "hostNetwork": true,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": "cni", "image": "example.org/cni:v1",
                    "volumeMounts": [{"name": "cni", "mountPath": "/etc/cni/net.d"}],
                }],
                "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
            }},
        },
    });
    let config_maps = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cni", "namespace": NAMESPACE},
        "data": {"cni.json": daemon_set.to_string()},
    });
    let set = object::<ClusterResourceSet>(
        "cni",
        json!({}),
        json!({
            "clusterSelector": {"matchLabels": {"cni": "sim"}},
            "resources": [{"kind": "ConfigMap", "name": "cni"}],
        }),
    );
    vec![(config_maps, config_map), set]
}
