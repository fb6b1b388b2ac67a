//! The manifests of a minimal cluster.

use crate::class;
use crate::expect::Shape;
use capstan_controller::KindName;
use capstan_object::Object;
use serde_json::{Value, json};

use capstan_capi_types::addons::ClusterResourceSet;
use capstan_capi_types::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, MachineDeployment, MachineHealthCheck, MachinePool};
use capstan_sim_provider::types::{SimCluster, SimMachinePool, SimMachineTemplate};

/// Name of the cluster, of its control plane, and of its other objects.
pub(crate) const NAME: &str = "c";
/// Name of the MachineDeployment or MachinePool.
pub(crate) const WORKERS: &str = "c-workers";
pub(crate) const NAMESPACE: &str = "default";

/// Seconds without a heartbeat after which a machine is replaced.
pub(crate) const SILENCE: i32 = 120;

pub(crate) fn object<T: Object>(name: &str, labels: Value, spec: Value) -> (KindName, Value) {
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

/// All objects of a cluster, in the order of a manifest file.
pub(crate) fn cluster(shape: &Shape) -> Vec<(KindName, Value)> {
    if shape.class {
        return class::cluster(shape);
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
pub(crate) fn network() -> Vec<(KindName, Value)> {
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
