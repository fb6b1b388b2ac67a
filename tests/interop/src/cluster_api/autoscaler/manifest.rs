//! Clusters whose workers an autoscaler counts: our examples and templates, with bounds.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::examples;
use crate::bed::install;
use crate::bed::openstack::OpenStack;
use crate::bed::template::substituted;

/// Kubernetes version of the clusters.
pub const VERSION: &str = "v1.36.0";
/// Name of the credentials Secret that our CloudStack templates assume.
pub const KEYS: &str = "cloudstack-credentials";
/// Label of Nodes by which Pods select a node group. Cluster API writes it from Machines to Nodes.
pub const POOL: &str = "node.cluster.x-k8s.io/pool";

const CORE: &str = "cluster.x-k8s.io";

/// Annotations of a node group. What an empty one does not show is said: the labels of its Nodes.
fn bounds(min: u32, max: u32, pool: Option<&str>) -> Value {
    let prefix = format!("{CORE}/cluster-api-autoscaler-node-group");
    let mut annotations =
        json!({format!("{prefix}-min-size"): min.to_string(), format!("{prefix}-max-size"): max.to_string()});
    if let Some(pool) = pool {
        annotations["capacity.cluster-autoscaler.kubernetes.io/labels"] = format!("{POOL}={pool}").into();
    }
    annotations
}

/// A MachineDeployment that the autoscaler counts. The order is one in which it would never delete by itself.
fn scaled(mut deployment: Value, (min, max): (u32, u32), pool: Option<&str>) -> Value {
    deployment["metadata"]["annotations"] = bounds(min, max, pool);
    let spec = &mut deployment["spec"];
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("replicas");
    }
    spec["deletion"] = json!({"order": "Newest"});
    if let Some(pool) = pool {
        spec["template"]["metadata"]["labels"][POOL] = pool.into();
    }
    deployment
}

/// The example of simulated machines with two MachineDeployments and a MachinePool, each with machines of a size.
pub fn plain() -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for object in examples(&["cni.yaml", "sim-cluster.yaml"])? {
        match object["kind"].as_str().unwrap_or_default() {
            "MachineDeployment" => {
                let mut big = scaled(object.clone(), (0, 2), Some("big"));
                big["metadata"]["name"] = "quick-big".into();
                big["spec"]["template"]["spec"]["infrastructureRef"]["name"] = "quick-big".into();
                objects.extend([scaled(object, (1, 3), Some("web")), big]);
            }
            "SimMachineTemplate" => {
                let mut big = object.clone();
                big["metadata"]["name"] = "quick-big".into();
                big["spec"]["template"]["spec"] = json!({"cpus": 4, "memoryMiB": 8192});
                objects.extend([object, big]);
            }
            _ => objects.push(object),
        }
    }
    objects.extend(pool());
    Ok(objects)
}

fn pool() -> [Value; 3] {
    let metadata = json!({"name": "quick-pool"});
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.{CORE}"), "kind": kind, "name": "quick-pool"});
    let mut named = metadata.clone();
    named["annotations"] = bounds(0, 2, None);
    let registration = json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}});
    [
        json!({
            "apiVersion": format!("bootstrap.{CORE}/v1beta2"), "kind": "KubeadmConfig", "metadata": metadata,
            "spec": {"joinConfiguration": registration},
        }),
        json!({
            "apiVersion": format!("infrastructure.{CORE}/v1beta1"), "kind": "SimMachinePool", "metadata": metadata,
            "spec": {"template": {"cpus": 8, "memoryMiB": 16384}},
        }),
        json!({
            "apiVersion": format!("{CORE}/v1beta2"), "kind": "MachinePool", "metadata": named,
            "spec": {"clusterName": "quick", "template": {"spec": {
                "clusterName": "quick", "version": VERSION,
                "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfig")},
                "infrastructureRef": reference("infrastructure", "SimMachinePool"),
            }}},
        }),
    ]
}

/// The example of a ClusterClass. The topology does not say how many workers there are.
pub fn of_a_class() -> Result<Vec<Value>> {
    let mut objects = examples(&["cni.yaml", "sim-class.yaml"])?;
    let cluster = objects.iter_mut().find(|object| object["kind"] == "Cluster").context("no Cluster")?;
    let group = |name: &str, (min, max): (u32, u32), pool: &str| {
        json!({
            "class": "default-worker", "name": name, "deletion": {"order": "Newest"},
            "metadata": {"labels": {POOL: pool}, "annotations": bounds(min, max, Some(pool))},
        })
    };
    cluster["spec"]["topology"]["workers"]["machineDeployments"] =
        json!([group("md-0", (1, 3), "web"), group("big", (0, 2), "big")]);
    Ok(objects)
}

/// Our template for autoscaled workers on CloudStack.
pub fn on_cloudstack(cloud: &CloudStack) -> Result<Vec<Value>> {
    let path = crate::cargo::root().join("templates/cloudstack/cluster-template-autoscale.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = substituted(&text, |variable| {
        Some(match variable {
            "CLUSTER_NAME" | "CLOUDSTACK_NETWORK_NAME" => "cloudy".to_owned(),
            "CLUSTER_ENDPOINT_PORT" => cloud.endpoint_port.to_string(),
            "KUBERNETES_VERSION" => VERSION.to_owned(),
            "WORKER_MACHINE_MAX" => "3".to_owned(),
            "CLOUDSTACK_ZONE_NAME" => "zone-1".to_owned(),
            "CLOUDSTACK_TEMPLATE_NAME" => format!("ubuntu-2404-kube-{VERSION}"),
            "CLOUDSTACK_CONTROL_PLANE_MACHINE_OFFERING" => "Small Instance".to_owned(),
            "CLOUDSTACK_WORKER_MACHINE_OFFERING" => "Medium Instance".to_owned(),
            _ => return None,
        })
    })
    .with_context(|| path.display().to_string())?;
    let mut objects = install::documents(&text)?;
    for object in objects.iter_mut().filter(|object| object["kind"] == "MachineDeployment") {
        object["spec"]["deletion"] = json!({"order": "Newest"});
    }
    Ok(objects)
}

/// The example on OpenStack, with the Secret of its credentials.
pub fn on_openstack(cloud: &OpenStack) -> Result<Vec<Value>> {
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "openstack-credentials"},
        "stringData": {"clouds.yaml": cloud.clouds_yaml},
    })];
    for mut object in examples(&["openstack-cluster.yaml"])? {
        match (object["kind"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str()) {
            ("MachineDeployment", _) => objects.push(scaled(object, (0, 3), None)),
            ("OpenStackMachineTemplate", Some("stacky-workers")) => {
                // A project has twenty cores by default.
                object["spec"]["template"]["spec"]["flavor"]["filter"]["name"] = "m1.medium".into();
                objects.push(object);
            }
            _ => objects.push(object),
        }
    }
    Ok(objects)
}
