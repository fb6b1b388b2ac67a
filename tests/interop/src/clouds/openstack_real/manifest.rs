//! The manifests of the cluster: the published example, spread over two zones.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bed::cluster::examples;
use crate::bed::real_openstack::{TENANT, ZONES};

/// Kubernetes version of the cluster, and the one that it is upgraded to. There are images of both.
pub const VERSION: &str = "v1.35.0";
pub const NEXT: &str = "v1.36.0";
/// Name and namespace of the cluster.
pub const NAME: &str = "stacky";
/// Workers per zone at first.
const WORKERS: [i64; 2] = [2, 1];

/// The objects, with the Secret. API servers listen at `port`, on machines and on the load balancer.
pub fn objects(clouds_yaml: &str, port: u16) -> Result<Vec<Value>> {
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "openstack-credentials"},
        "stringData": {"clouds.yaml": clouds_yaml},
    })];
    for mut object in examples(&["openstack-cluster.yaml"])? {
        match object["kind"].as_str().unwrap_or_default() {
            "OpenStackCluster" => {
                ensure!(
                    object["spec"]["identityRef"]["cloudName"] == TENANT,
                    "the example has another cloud"
                );
                object["spec"]["apiServer"]["port"] = port.into();
                objects.push(object);
            }
            "KubeadmControlPlane" => {
                let spec = &mut object["spec"];
                spec["replicas"] = 3.into();
                spec["version"] = VERSION.into();
                let endpoint = json!({"bindPort": port});
                let config = &mut spec["kubeadmConfigSpec"];
                config["initConfiguration"]["localAPIEndpoint"] = endpoint.clone();
                config["joinConfiguration"]["controlPlane"]["localAPIEndpoint"] = endpoint;
                objects.push(object);
            }
            "MachineDeployment" => {
                for (zone, replicas) in ZONES.iter().zip(WORKERS) {
                    let mut workers = object.clone();
                    workers["metadata"]["name"] = format!("{NAME}-{zone}").into();
                    workers["spec"]["replicas"] = replicas.into();
                    let spec = &mut workers["spec"]["template"]["spec"];
                    spec["version"] = VERSION.into();
                    spec["failureDomain"] = (*zone).into();
                    objects.push(workers);
                }
            }
            "OpenStackMachineTemplate" => objects.push(with_image(object, VERSION)),
            _ => objects.push(object),
        }
    }
    Ok(objects)
}

fn with_image(mut template: Value, version: &str) -> Value {
    template["spec"]["template"]["spec"]["image"]["filter"]["name"] =
        format!("ubuntu-2404-kube-{version}").into();
    template
}

/// Templates of machines with the next version.
pub fn next_templates(objects: &[Value]) -> Result<Vec<Value>> {
    let all = objects.iter().filter(|object| object["kind"] == "OpenStackMachineTemplate");
    let next = all.map(|object| {
        let mut template = with_image(object.clone(), NEXT);
        let name = object["metadata"]["name"].as_str().context("a template without a name")?;
        template["metadata"]["name"] = next_name(name).into();
        Ok(template)
    });
    next.collect()
}

/// Changes of the control plane and of the workers that make them machines of the next version.
pub fn upgrade() -> (Value, Value) {
    let template = |role: &str| json!({"name": next_name(&format!("{NAME}-{role}"))});
    (
        json!({"spec": {"version": NEXT, "machineTemplate": {"spec": {"infrastructureRef": template("control-plane")}}}}),
        json!({"spec": {"template": {"spec": {"version": NEXT, "infrastructureRef": template("workers")}}}}),
    )
}

fn next_name(name: &str) -> String {
    format!("{name}-next")
}
